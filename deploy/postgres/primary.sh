#!/bin/sh
# Run once in the directory of a new primary: lets a standby follow it, and has commits wait for one from the next start on.
set -eu
echo 'host replication all all scram-sha-256' >> "$PGDATA/pg_hba.conf"
echo "synchronous_standby_names = '*'" >> "$PGDATA/postgresql.conf"
