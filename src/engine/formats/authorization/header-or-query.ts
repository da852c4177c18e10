import { z } from 'zod'
import { Failure } from '../../../foundation/base/index.ts'
import { isJsonObject, type Json, type JsonObject } from '../../../foundation/json/index.ts'
import type { TemplateScope } from '../../expressions/placeholder.ts'
import { compileTemplate, renderText } from '../../expressions/template.ts'
import { withSchema } from '../format.ts'
import { expressionText, headerName, mapOf, nameText, refineWith, secretText } from '../schema-types.ts'
import type { AuthorizationFormat, Authorize, UnauthorizedRequest } from './authorization.ts'

const headerConfig = z
  .strictObject({
    header_name: headerName().optional().describe('Name of the one header to send.'),
    header_value: secretText().optional().describe('Value of `header_name`.'),
    headers: mapOf(headerName(), secretText()).optional().describe('Several headers by name.'),
    expression: expressionText(['url', 'request', 'context', 'credentials'])
      .optional()
      .describe(
        'JSONata over `url`, `request` {method, query, headers, body}, `context`, `credentials`, `env`; returns an object of headers.',
      ),
  })
  .superRefine(refineWith(findShapeProblem, 'authorization.shape'))

type HeaderConfig = z.output<typeof headerConfig>

/** `header`: one header, several, or headers computed from the request (signatures). */
export const header: AuthorizationFormat = {
  format: 'header',
  summary: 'Sends one header (`header_name`, `header_value`), a map of `headers`, or what an `expression` returns.',
  config: headerConfig,
  compile: withSchema(headerConfig, ({ header_name = '', header_value = '', headers, expression }) => {
    const texts =
      expression === undefined ? literalTexts(headers ?? { [header_name]: header_value }) : computedTexts(expression)
    return async (...call) => ({ headers: lowerCaseNames(await texts(...call)), query: {} })
  }),
}

function findShapeProblem({ header_name, header_value, headers, expression }: HeaderConfig): string | undefined {
  if ((header_name === undefined) !== (header_value === undefined)) return 'needs header_name and header_value together'
  const given = [header_name, headers, expression].filter((part) => part !== undefined).length
  return given === 1 ? undefined : 'needs exactly one of header_name with header_value, headers, or expression'
}

function findQueryShapeProblem({ params, expression }: z.output<typeof queryConfig>): string | undefined {
  return (params === undefined) === (expression === undefined)
    ? 'needs exactly one of params and expression'
    : undefined
}

/** Renders texts by name, which become headers or parameters. */
type RenderTexts = (...call: Parameters<Authorize>) => Record<string, string> | Promise<Record<string, string>>

function literalTexts(values: Readonly<Record<string, string>>): RenderTexts {
  const templates = Object.entries(values).map(([name, value]) => [name, compileTemplate(value)] as const)
  return (_request, scope) => {
    const rendered: Record<string, string> = {}
    for (const [name, template] of templates) rendered[name] = renderText(template, scope)
    return rendered
  }
}

function computedTexts(expression: string): RenderTexts {
  return async (request, scope, { evaluate }) =>
    textsFromJson(await evaluate(expression, expressionRoots(request, scope)))
}

function lowerCaseNames(texts: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(texts).map(([name, value]) => [name.toLowerCase(), value]))
}

function expressionRoots(request: UnauthorizedRequest, { account }: TemplateScope): JsonObject {
  const { method, url, headers, body } = request
  const text = body === undefined ? null : typeof body === 'string' ? body : Buffer.from(body).toString('latin1')
  return {
    url,
    request: { method, query: url.split('#', 1)[0]?.split(/\?(.*)/s, 2)[1] ?? '', headers, body: text },
    context: account.context,
    credentials: { ...account.context, ...account.credentials },
  }
}

function textsFromJson(result: Json | undefined): Record<string, string> {
  if (!isJsonObject(result))
    throw new Failure('EXPRESSION_FAILED', 'the authorization expression must return an object of names and values')
  return Object.fromEntries(Object.entries(result).map(([name, value]) => [name, String(value)]))
}

const queryConfig = z
  .strictObject({
    params: mapOf(nameText(), secretText()).optional().describe('Query parameters by name.'),
    expression: expressionText(['url', 'request', 'context', 'credentials'])
      .optional()
      .describe(
        'JSONata over `url`, `request` {method, query, headers, body}, `context`, `credentials`, `env`; returns an object of parameters, in their order: a signature over the query comes last.',
      ),
  })
  .superRefine(refineWith(findQueryShapeProblem, 'authorization.shape'))

/** `query`: keys in the URL. */
export const query: AuthorizationFormat = {
  format: 'query',
  summary:
    'Adds query parameters (`params`, or what an `expression` returns), after all others; they are never logged.',
  config: queryConfig,
  compile: withSchema(queryConfig, ({ params = {}, expression }) => {
    const texts = expression === undefined ? literalTexts(params) : computedTexts(expression)
    return async (...call) => ({ headers: {}, query: await texts(...call) })
  }),
}
