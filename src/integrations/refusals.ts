import { Failure, invalidFields, type JsonObject, type Violation } from '../base/index.ts'

/** The name is in use in the team; the holder is unknown when it was taken this moment. */
export function nameTaken(name: string, holderId: string | undefined): Failure {
  const message = `the team has an integration named ${name} already`
  const resource = holderId === undefined ? {} : { resource: { type: 'integration', id: holderId } }
  return new Failure('NAME_TAKEN', message, resource)
}

/** @throws Failure DEFINITION_INVALID with all findings, unless there are none */
export function assertValid(violations: readonly Violation[]): void {
  if (violations.length > 0) throw invalidFields(violations, 'DEFINITION_INVALID')
}

/**
 * Findings about the addresses of a config that outbound requests may not reach; addresses that begin with a placeholder
 * are judged when they are called.
 *
 * @param path prefix of the reported fields
 */
export type CheckUrls = (config: JsonObject, path: string) => readonly Violation[]

/** @throws Failure URL_NOT_ALLOWED with all findings, unless there are none */
export function assertUrlsAllowed(violations: readonly Violation[]): void {
  if (violations.length > 0) throw invalidFields(violations, 'URL_NOT_ALLOWED')
}
