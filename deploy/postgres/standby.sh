#!/bin/sh
# Starts a standby: a copy of the primary at its first start, and what it has from then on.
set -eu
if [ ! -s "$PGDATA/PG_VERSION" ]; then
  # What a copy that was cut off has left.
  rm -rf "${PGDATA:?}"/*
  until pg_basebackup -d "host=db1 user=$POSTGRES_USER" -D "$PGDATA" -R -X stream -c fast; do sleep 1; done
fi
chmod 0700 "$PGDATA"
exec postgres
