# Fails, before anything has changed, when something is attached that no plugin which stays or comes would remove.
# A program that does not run cannot tell, and must not keep its package from being removed.
before_removal() {
	package=$1 more=$2
	shift 2
	case "$PATCHBAY_REMOVE" in
	force) return 0 ;;
	replaced) more=--replaced ;;
	esac
	# Another root's containers are none of this host's.
	[ -z "$DPKG_ROOT" ] || return 0
	limit=
	! command -v timeout >/dev/null || limit="timeout 60"
	refusal= failure= is_allowed= is_final=
	for directory in "$@"; do
		status=0
		said=$($limit /@PROGRAM@ install --uninstall --dry-run $more "/$directory" 2>&1) || status=$?
		case $status in
		0) is_allowed=yes ;;
		@REFUSED@)
			refusal=$said
			# Its links are called as long as they are there, whatever other directories have.
			! leads_here "/$directory" || is_final=yes
			;;
		*) failure="$said (exit status $status)" ;;
		esac
	done
	if [ -n "$is_final" ] || { [ -n "$refusal" ] && [ -z "$is_allowed" ]; }; then
		printf '%s\n' "$refusal" >&2
		echo "$package: where Go's plugins come in this place, set PATCHBAY_REMOVE=replaced in the environment;" >&2
		echo "PATCHBAY_REMOVE=force removes the package all the same." >&2
		return 1
	fi
	[ -n "$is_allowed" ] || printf '%s\n' "$failure" "$package: could not ask what is attached, and goes on" >&2
}

# Whether links in the directory lead to this package's program.
leads_here() {
	for link in "$1"/*; do
		! [ "$link" -ef /@PROGRAM@ ] || return 0
	done
	return 1
}
