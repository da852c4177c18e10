/**
 * Turns the texts of definitions into values: `{{placeholders}}` and JSONata expressions.
 *
 * One lexer, one renderer, one sandbox. Nothing here knows definitions, accounts or pagination, and no other module looks
 * for `{{` or imports jsonata.
 */

export { ENVIRONMENT_ROOTS, environmentRoots, isSecretName, readsEnvironment } from './environment-variables.ts'
export {
  type CompiledExpression,
  compileExpression,
  createEvaluator,
  type Evaluator,
  evaluateInline,
  type ValueColumn,
} from './evaluator.ts'
export { findFilteredList } from './filtered-list.ts'
export { validateExpression } from './parse.ts'
export {
  type AccountValues,
  type ActionValues,
  isPlaceholderRoot,
  type Placeholder,
  type PlaceholderPath,
  parentResources,
  type TemplateScope,
} from './placeholder.ts'
export { listInputPaths, listRootNames, listVariablePaths, readsWholeInput } from './reads.ts'
export { dateOnly, isoDate } from './sandbox/dates.ts'
export { decimal } from './sandbox/decimals.ts'
export {
  compileJson,
  compileTemplate,
  findTemplateProblem,
  type JsonTemplate,
  listPlaceholderPaths,
  listPlaceholders,
  renderJson,
  renderObject,
  renderText,
  renderValue,
  type TextTemplate,
} from './template.ts'
export {
  assertNoDotSegments,
  compileUrl,
  decodedForms,
  findBaseUrlProblem,
  type HostPlaceholder,
  listHostPlaceholders,
  renderUrl,
  type UrlTemplate,
  urlTemplateText,
} from './url-template.ts'
export { listWrittenMembers } from './written-members.ts'
