/**
 * Everything that a definition chooses by a format's name: authorization, credentials, pagination, signatures, request bodies
 * and responses, with one registry each.
 *
 * A format is its schema, its documentation and its behaviour. Nothing here knows whole definitions, a database or sockets;
 * a new format is one file and one line of its registry.
 */

export { type AwsSigningKey, signAwsRequest } from './authorization/aws-signature.ts'
export { findValueProblem } from './credential/check-field-value.ts'
export { collectFields, type FieldsSource } from './credential/collect-fields.ts'
export type {
  AuthenticationMethod,
  AuthorizationFailure,
  AuthorizationRedirect,
  AuthorizationResult,
  AuthorizationReturn,
  AuthorizationRules,
  AuthorizationStart,
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
export { type FormField, type FormOption, listFormFields, type RemoteOptions } from './credential/field-view.ts'
export { type Field, isSecretField } from './credential/fields.ts'
export { readRedirectError } from './credential/redirect.ts'
export { authenticationMethodOfFormat, listCredentials } from './credential/registry.ts'
export {
  IMPORTED_FIELDS,
  importedToken,
  parseLooseBody,
  readStandardTokenResponse,
} from './credential/token-response.ts'
export { FORM_TOO_LARGE, formFields, isFormType, readForm } from './form.ts'
export { isTruthy } from './format.ts'
export { readMultipart } from './multipart.ts'
export { isJsonType } from './response/answer-outcome.ts'
export { CharsetError, charsetOf, decodeAnyText } from './response/charset.ts'
export { decodeLarge } from './response/decode-large.ts'
export { responseFormat } from './response/registry.ts'
export { hasSecret } from './signature/authentication.ts'
export { explainSignature } from './signature/explain.ts'
export { createKeySource } from './signature/key-source.ts'
export type { KeySource, WebhookRequest } from './signature/verification.ts'
