import { expect } from 'vitest'

/** Any uuid, in lower case. */
export const UUID: unknown = expect.stringMatching(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/)

/** Any time as the service writes it: RFC 3339 in UTC with milliseconds. */
export const TIME: unknown = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)

/** The HTTP status of an error, where the protocol has one: gRPC responds 200 and puts its code in a trailer. */
export function statusOver({ wire }: { readonly wire: string }, httpStatus: number): number | undefined {
  return wire === 'grpc' ? undefined : httpStatus
}
