/** What was seen in place of what is demanded. */
export class Unmet extends Error {}

/** ADD has failed, on which the demand only builds. */
export class AddFailed extends Unmet {}
