/**
 * Everything that turns definition text into values: `{{placeholders}}` and JSONata expressions.
 *
 * One lexer, one renderer, one sandbox. Nothing here knows what a pagination or an account row is, and no other room may
 * look for `{{` or import jsonata.
 */

export { createEvaluator, type Evaluator } from './evaluator.ts'
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
export { findFilteredList, listRootNames, listVariablePaths } from './static-analysis.ts'
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
export { assertNoDotSegments, compileUrl, findBaseUrlProblem, renderUrl, type UrlTemplate } from './url-template.ts'
