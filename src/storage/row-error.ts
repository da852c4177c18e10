/** SQLSTATE classes 22 (data exception) and 23 (integrity constraint violation). */
const ABOUT_ONE_ROW = /^2[23]/

/** Tells whether a value in some row is the problem, rather than the statement, the connection or the server. */
export function isRowError(error: unknown): boolean {
  return error instanceof Error && 'code' in error && ABOUT_ONE_ROW.test(String(error.code))
}
