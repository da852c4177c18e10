/** A command was called with something it does not take; its message names the command, the option and what it takes. */
export class UsageError extends Error {}
