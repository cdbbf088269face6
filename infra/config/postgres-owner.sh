#!/bin/sh
# Run once by the Postgres image, when it has made its cluster: the owner of the database, who may
# create the services' roles and isn't a superuser.
set -eu
psql --set ON_ERROR_STOP=1 --set password="$(cat /etc/quotagate/owner_password)" \
    --username "$POSTGRES_USER" --dbname postgres <<'SQL'
CREATE ROLE quotagate LOGIN CREATEROLE PASSWORD :'password';
CREATE DATABASE quotagate OWNER quotagate;
SQL
