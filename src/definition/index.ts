/**
 * The definition of a third-party API as data: its schema, its check, the merge of an override, and the plan it is
 * compiled to.
 *
 * Everything here is a pure function of JSON. Nothing here performs a call, and no other room reads a config by hand.
 */
export type {
  ActionPlan,
  ContextSource,
  StepPlan,
} from './action-plan.ts'
export { RESERVED_ACTIONS } from './action-schema.ts'
export { listAddresses } from './addresses.ts'
export { CONFIG_LENGTH_MAX, type ConfigKind, checkConfig, checkOverride } from './check.ts'
export { checkConfigAsync, checkOverrideAsync, isLargeConfig } from './check-async.ts'
export { compilePlan, isWritingVerb } from './compile.ts'
export { ACTION_RESOURCE } from './compile-action.ts'
export { writePath } from './json-path.ts'
export { integrationConfigSchema } from './json-schema.ts'
export type {
  BudgetRule,
  ConnectPlan,
  MethodPlan,
  Plan,
  RateLimitRules,
} from './plan.ts'
export { type ResolvedConfig, resolveConfig } from './resolve.ts'
export { secretPaths, secretTexts } from './secret-paths.ts'
export { listTools, type Tool } from './tools.ts'
