/**
 * Turns the texts of definitions into values: `{{placeholders}}` and JSONata expressions.
 *
 * One lexer, one renderer, one sandbox. Nothing here knows definitions, accounts or pagination, and no other module looks
 * for `{{` or imports jsonata.
 */

export { environmentRoots, readsEnvironment } from './environment-variables.ts'
export { createEvaluator, type Evaluator } from './evaluator.ts'
export { validateExpression } from './parse.ts'
export { type AccountValues, type PlaceholderPath, parentResources, type TemplateScope } from './placeholder.ts'
export {
  compileJson,
  compileTemplate,
  findTemplateProblem,
  type JsonTemplate,
  listPlaceholderPaths,
  renderJson,
  renderObject,
  renderValue,
  type TextTemplate,
} from './template.ts'
export { renderUrl } from './url-template.ts'
