/**
 * Everything that a definition chooses by a format's name: authorization, credentials, pagination, signatures, request bodies
 * and responses, with one registry each.
 *
 * A format is its schema, its documentation and its behaviour. Nothing here knows whole definitions, a database or sockets;
 * a new format is one file and one line of its registry.
 */

export {
  type AuthorizationContext,
  type AuthorizationEffect,
  type Authorize,
  type Challenge,
  NO_AUTHORIZATION,
} from './authorization/authorization.ts'
export { type AwsSigningKey, signAwsRequest } from './authorization/aws-signature.ts'
export { authorizationSchema, compileAuthorization, sendsSecret } from './authorization/index.ts'
export type { BodyFormat } from './body/body.ts'
export { BODY_FORMATS, bodyFormat } from './body/index.ts'
export { FIELD_RULES, findValueProblem } from './credential/check-field-value.ts'
export { collectFields, type FieldsSource } from './credential/collect-fields.ts'
export type {
  AuthenticationMethod,
  AuthorizationFailure,
  AuthorizationRedirect,
  AuthorizationResult,
  AuthorizationReturn,
  AuthorizationRules,
  AuthorizationStart,
  CredentialChoice,
  CredentialPlan,
  Identity,
  Lifetimes,
  RevocationResult,
  TokenContext,
  TokenError,
  TokenRejection,
  TokenResponse,
  TokenResult,
  TokenRules,
  TokenSet,
} from './credential/credential.ts'
export { findPatternProblem, matchesPattern } from './credential/field-pattern.ts'
export { type FormField, type FormOption, listFormFields, type RemoteOptions } from './credential/field-view.ts'
export {
  checkField,
  FIELD_FORMATS,
  FIELDS_MAX,
  type Field,
  fieldKeys,
  fieldList,
  fieldListOf,
  findPatternsProblem,
  isSecretField,
} from './credential/fields.ts'
export {
  authenticationMethodOfFormat,
  CREDENTIAL_FORMATS,
  compileCredential,
  credentialsSchema,
  listCredentials,
} from './credential/index.ts'
export { readRedirectError } from './credential/redirect.ts'
export {
  IMPORTED_FIELDS,
  importedToken,
  parseLooseBody,
  readStandardTokenResponse,
} from './credential/token-response.ts'
export { FORM_TOO_LARGE, formFields, isFormType, readForm } from './form.ts'
export { type FormatChoice, isTruthy } from './format.ts'
export { readMultipart } from './multipart.ts'
export { assertAllowedLink } from './pagination/allowed-link.ts'
export { compilePagination, paginationSchema } from './pagination/index.ts'
export { advancePage, type ListingState, pageParams, parseListingState, startListing } from './pagination/listing.ts'
export type { ListingContext, PageParam, PageParams, Pagination, StopRule } from './pagination/paginator.ts'
export { listStopRules } from './pagination/rules.ts'
export { appendQuery, mapQuery, type QueryArrayFormat, setQuery, writeQuery } from './query-string.ts'
export { queryArrayFormatSchema, type RequestDefinition, requestKeys } from './request-keys.ts'
export {
  type AnswerPurpose,
  type AnswerRules,
  answerOutcome,
  type BodyClass,
  classOfNoBody,
  classOfText,
  isJsonType,
} from './response/answer-outcome.ts'
export { CharsetError, charsetOf, decodeAnyText, decodeLoosely } from './response/charset.ts'
export { formatForType, isTsvType } from './response/csv.ts'
export { decodeLarge } from './response/decode-large.ts'
export { responseFormat } from './response/index.ts'
export { BodyFormatError, decodeUtf8, type ResponseFormat } from './response/response.ts'
export {
  anyJson,
  DEFINITION_LIMITS,
  expressionText,
  type FieldRole,
  fieldPath,
  fieldRoles,
  findPathProblem,
  headerMap,
  headerName,
  listOf,
  mapOf,
  nameText,
  plainText,
  RESPONSE_ROOTS,
  rawText,
  refineWith,
  templateMap,
  templateText,
  urlText,
  webAddress,
} from './schema-types.ts'
export { authenticates, hasSecret } from './signature/authentication.ts'
export { explainSignature } from './signature/explain.ts'
export { compileSignature, signatureSchema } from './signature/index.ts'
export { createKeySource, type KeySource } from './signature/key-source.ts'
export type { Verify, WebhookRequest } from './signature/signature.ts'
export { compileTime, type ReadTime } from './signature/signed-content.ts'
export { compileSource, type ReadValues, readsPayload, tokenText } from './signature/source.ts'
