#!/usr/bin/env bash
# Runs govulncheck. Without its database there is nothing to check against: that is said, and is no failure.
# usage: vuln.sh GOVULNCHECK
set -euo pipefail
govulncheck=$1

status=0
output=$("$govulncheck" ./... 2>&1) || status=$?
printf '%s\n' "$output"
if [ "$status" -eq 1 ] && grep -qE 'vuln\.go\.dev|fetching vulnerabilities' <<<"$output"; then
  echo "vuln: the vulnerability database cannot be reached; nothing was checked"
  exit 0
fi
exit "$status"
