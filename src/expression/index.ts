/**
 * Everything that turns definition text into values: `{{placeholders}}` and JSONata expressions.
 *
 * One lexer, one renderer, one sandbox. Nothing here knows what a pagination or an account row is, and no other room may
 * look for `{{` or import jsonata.
 */
export {
  createEvaluator,
  type EvaluationLimits,
  type Evaluator,
} from './jsonata/evaluator.ts'
export { findFilteredList } from './jsonata/filtered-list.ts'
export { validateExpression } from './jsonata/parse.ts'
export { listRootNames } from './jsonata/root-names.ts'
export { listVariablePaths } from './jsonata/variable-paths.ts'
export { lexTemplate, type Placeholder, type PlaceholderPath } from './placeholder.ts'
export {
  type AccountValues,
  type ActionValues,
  isPlaceholderRoot,
  parentResources,
  type TemplateScope,
} from './scope.ts'
export {
  compileJson,
  compileTemplate,
  findTemplateProblem,
  type JsonTemplate,
  listPlaceholderPaths,
  renderJson,
  renderObject,
  renderText,
  renderValue,
  type TextTemplate,
} from './template.ts'
export { assertNoDotSegments, compileUrl, findBaseUrlProblem, renderUrl, type UrlTemplate } from './template-url.ts'
