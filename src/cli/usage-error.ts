/** A command was called with words it does not know; its message says how to call it. */
export class UsageError extends Error {}
