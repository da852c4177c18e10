import { z } from 'zod'
import { compileTemplate, renderText } from '../../expression/index.ts'
import { withSchema } from '../format.ts'
import { mapOf, nameText, secretText } from '../vocabulary.ts'
import type { AuthorizationFormat } from './authorization.ts'

const queryConfig = z.strictObject({
  params: mapOf(nameText(), secretText()).describe('Query parameters by name.'),
})

/** `query`: keys in the URL. */
export const query: AuthorizationFormat = {
  format: 'query',
  summary: 'Adds query parameters, after all others; they are never logged.',
  config: queryConfig,
  compile: withSchema(queryConfig, ({ params }) => {
    const templates = Object.entries(params).map(([name, value]) => [name, compileTemplate(value)] as const)
    return (_request, scope) => {
      const rendered: Record<string, string> = {}
      for (const [name, template] of templates) rendered[name] = renderText(template, scope)
      return { headers: {}, query: rendered }
    }
  }),
}
