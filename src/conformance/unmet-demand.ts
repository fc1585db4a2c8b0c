/** What was seen in place of what is demanded. */
export class UnmetDemand extends Error {}

/** ADD has failed, on which the demand only builds. */
export class AddFailed extends UnmetDemand {}
