/**
 * The definition of a third-party API as data: its schema, its validation, the merge of an override, and its compilation to
 * a plan.
 *
 * Pure functions of JSON. Nothing here performs a call, and no other module reads a config by hand.
 */

export { ACTION_RESOURCE, FORM_ACTION, RESERVED_ACTIONS } from './actions.ts'
export { findDivertibleSecrets, type HostValue, hostsOf, isOfCaller, openHostsOf } from './address-data-flow.ts'
export {
  type ConfigKind,
  checkConfig,
  checkConfigAsync,
  checkOverride,
  checkOverrideAsync,
  isLargeConfig,
} from './check.ts'
export { findOverrideWarnings } from './check-override.ts'
export { clientNameOf, isClientConfigured } from './client-settings.ts'
export { compilePlan } from './compile.ts'
export { movesMore } from './compile-webhook.ts'
export { integrationConfigSchema } from './config-schema.ts'
export { findAddressViolations, publicVariables, secretPaths } from './config-values.ts'
export { findWarnings } from './find-warnings.ts'
export { labelKeyOf } from './form-fields.ts'
export { type ResolvedConfig, resolveConfig } from './merge.ts'
export { isForOneRecord, isReadingMethod, methodKind, READING_METHODS, sendsRecord } from './method-kinds.ts'
export type {
  BudgetRule,
  ConnectPlan,
  DedupePlan,
  FormFieldPlan,
  MethodPlan,
  OptionsSource,
  Plan,
  RequestMember,
  SubscriptionPlan,
  SubscriptionVerb,
  TransformPlan,
  WebhookPlan,
  WebhookRate,
} from './plan.ts'
export { listTools, pagingKeys, requiredInput, requiredParameters, type Tool } from './tools.ts'
export {
  ANSWER_BYTES_MAX,
  compileAnswer,
  isAnswerHeaderValue,
  isFinalStatus,
  pickAnswerHeaders,
  type WebhookAnswer,
} from './webhook-answer.ts'
export { durationSeconds } from './webhook-subscription.ts'
