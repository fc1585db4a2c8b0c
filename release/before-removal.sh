# Fails, before anything has changed, when something is attached that no plugin which stays or comes would remove.
# A program that does not run cannot tell, and must not keep its package from being removed.
before_removal() {
	package=$1 more=$2
	shift 2
	case "$PATCHBAY_REMOVE" in
	force) return 0 ;;
	replaced) more=--replaced ;;
	esac
	for directory in "$@"; do
		status=0
		said=$(/PROGRAM install --uninstall --dry-run $more "/$directory" 2>&1) || status=$?
		[ $status -ne 0 ] || return 0
	done
	echo "$said" >&2
	if [ $status -ne REFUSED ]; then
		echo "$package: could not ask what is attached (exit status $status), and goes on" >&2
		return 0
	fi
	echo "$package: where Go's plugins come in this place, set PATCHBAY_REMOVE=replaced in the environment;" >&2
	echo "PATCHBAY_REMOVE=force removes the package all the same." >&2
	return 1
}
