/** SQLSTATE classes 22 (data exception) and 23 (integrity constraint violation). */
const DATA_OR_CONSTRAINT = /^2[23]/

/** Tells whether a value in some row is the problem, rather than the statement, the connection or the server. */
export function isDataError(error: unknown): boolean {
  return error instanceof Error && 'code' in error && DATA_OR_CONSTRAINT.test(String(error.code))
}
