"""What wakes admission: three kinds of requests, and changes of policies and prices."""
