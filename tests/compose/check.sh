#!/usr/bin/env bash
# Checks a running compose project from outside, as a client and an operator would:
#
#   docker compose up -d --wait --scale admission=3 && tests/compose/check.sh
#
# Needs curl, python3, and the project's folder as working folder. Status 0: all is well.
set -euo pipefail
cd "$(dirname "$0")/../.."

edge=http://127.0.0.1:${EDGE_PORTS:-8080}
control=http://127.0.0.1:${CONTROL_PLANE_PORT:-8081}/admin/v1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

say() { printf '%s\n' "$*"; }
fail() { say "FAILED: $*" >&2; exit 1; }
field() { python3 -c 'import json,sys; v=json.load(sys.stdin)
for k in sys.argv[1].split("."): v=v[int(k) if k.isdigit() else k]
print(v)' "$1"; }
ask() { # ask KEY [CURL ARGUMENTS]: one chat completion; prints the status, leaves body and headers
    local key=$1; shift
    curl --silent --show-error --max-time 20 --output "$scratch/body" \
        --dump-header "$scratch/headers" --write-out '%{http_code}' "$@" \
        "$edge/v1/chat/completions" -H "Authorization: Bearer $key" \
        -H 'Content-Type: application/json' \
        -d '{"model": "gpt-4o-mini", "messages": [{"role": "user", "content": "Hello"}]}'
}
admin() { curl --silent --show-error --fail-with-body --max-time 20 "$control/$1" -H "Authorization: Bearer $token"; }

demo_key() { # the key that the demo job prints
    docker compose run --rm -T demo > "$scratch/demo" || fail "the demo job failed"
    sed -n 's/^API key  *\(qg_[A-Za-z0-9_]*\).*/\1/p' "$scratch/demo"
}

say "The demo job makes a team and prints its key, the same each time."
key=$(demo_key)
[ -n "$key" ] || fail "the demo job printed no key: $(cat "$scratch/demo")"
[ "$(demo_key)" = "$key" ] || fail "the demo job made another key the second time"
token=$(docker compose run --rm -T --entrypoint cat demo /run/secrets/admin_token)

say "The first request is answered and charged, the second is a 429."
before=$(admin teams/demo/account | field balance)
[ "$(ask "$key")" = 200 ] || fail "the first request: $(cat "$scratch/headers" "$scratch/body")"
inference=$(tr -d '\r' < "$scratch/headers" | sed -n 's/^x-inference-id: //p')
[ "$(ask "$key")" = 429 ] || fail "the second request: $(cat "$scratch/headers" "$scratch/body")"
grep --quiet --ignore-case '^retry-after: ' "$scratch/headers" || fail "a 429 without Retry-After"
for _ in $(seq 100); do
    after=$(admin teams/demo/account | field balance)
    [ "$after" = "$before" ] || break
    sleep 0.1
done
[ "$after" != "$before" ] || fail "the request was not charged"
admin "teams/demo/records/$inference" > "$scratch/record" || fail "no record of $inference"
say "  balance $before -> $after"

say "A wrong key is a 401."
[ "$(ask qg_wrong)" = 401 ] || fail "a wrong key: $(cat "$scratch/body")"

say "The operator's commands find nothing to complain of."
for command in doctor "verify --cache-wait-s 60"; do
    # shellcheck disable=SC2086 # a command and its options
    docker compose run --rm -T operator $command > "$scratch/answer" 2>&1 \
        || fail "operator $command: $(cat "$scratch/answer")"
done

admissions=$(docker compose ps --quiet admission | wc -l)
say "There are $admissions admissions; one is killed, and requests are still answered."
docker kill "$(docker compose ps --quiet admission | head -n 1)" > /dev/null
sleep 3.1
[ "$admissions" -lt 2 ] || [ "$(ask "$key")" = 200 ] \
    || fail "after an admission was killed: $(cat "$scratch/body")"

say "Everything is healthy but what was killed:"
docker compose ps
say "All is well."
