/**
 * Everything that a definition chooses by name: six families of equal anatomy, one file per format, one registry each.
 *
 * A format is its schema, its documentation and its behaviour. Nothing here knows a whole definition, a database or a
 * socket; adding a format touches its own file and one line of its registry.
 */

export {
  type AuthorizationContext,
  type AuthorizationEffect,
  type Authorize,
  NO_AUTHORIZATION,
} from './authorization/authorization.ts'
export {
  AUTHORIZATION_FORMATS,
  authorizationSchema,
  compileAuthorization,
} from './authorization/index.ts'
export type { BodyFormat } from './body/body.ts'
export { BODY_FORMATS, bodyFormat } from './body/index.ts'
export { collectFields } from './credential/collect.ts'
export type {
  CredentialChoice,
  CredentialPlan,
} from './credential/credential.ts'
export { fieldList } from './credential/field.ts'
export { IMPORTED_FIELDS, importedToken } from './credential/imported-token.ts'
export {
  CREDENTIAL_FORMATS,
  compileCredential,
  credentialsSchema,
  listCredentials,
} from './credential/index.ts'
export type {
  TokenContext,
  TokenError,
  TokenResponse,
  TokenResult,
  TokenRules,
  TokenSet,
} from './credential/token.ts'
export { readStandardTokenResponse } from './credential/token-grant.ts'
export type { Format, FormatChoice } from './format.ts'
export { isTruthy } from './is-truthy.ts'
export { compilePagination, PAGINATION_FORMATS, paginationSchema } from './pagination/index.ts'
export { assertAllowedOrigin } from './pagination/link.ts'
export {
  advancePage,
  type ListingState,
  pageParams,
  parseListingState,
  startListing,
} from './pagination/listing.ts'
export type {
  ListingContext,
  PageParam,
  PageParams,
  Pagination,
  StopReason,
  StopRule,
} from './pagination/paginator.ts'
export { listStopRules } from './pagination/stop-rules.ts'
export { appendQuery, mapQuery, type QueryArrayFormat, setQuery, writeQuery } from './query-string.ts'
export { renderFormatReference } from './reference.ts'
export { queryArrayFormatSchema, type RequestDefinition, requestKeys } from './request-keys.ts'
export { CharsetError, charsetOf, decodeText } from './response/charset.ts'
export { decodeLarge } from './response/decode-large.ts'
export { RESPONSE_FORMATS, responseFormat } from './response/index.ts'
export { decodeUtf8, type ResponseFormat } from './response/response.ts'
export { compileSignature, SIGNATURE_FORMATS, signatureSchema } from './signature/index.ts'
export { createKeySource } from './signature/key-source.ts'

export {
  anyJson,
  expressionText,
  type FieldRole,
  fieldPath,
  fieldRoles,
  findPathProblem,
  headerMap,
  listOf,
  mapOf,
  nameText,
  plainText,
  RESPONSE_ROOTS,
  rawText,
  refineWith,
  templateMap,
  urlText,
  webAddress,
} from './vocabulary.ts'
