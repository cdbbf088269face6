"""A power cut: what a disk holds at one moment, while those who write to it are at work.

disk.py     a file system in a file, whose content can be taken as a power cut would leave it
broker.py   a NATS server on such a disk, and what it acknowledged
spooler.py  a process that spools records on such a disk
"""
