import type { JsonObject } from '../../../../src/foundation/json/index.ts'

/**
 * A definition whose tools are those that the conformance tool asks for, as far as tools of an API can be those, and contacts for
 * an agent.
 */
export function mcpDefinition(baseUrl: string): JsonObject {
  const action = (description: string, path: string): JsonObject => ({
    type: 'request',
    description,
    config: { method: 'GET', path },
  })
  return {
    label: 'Contacts',
    base_url: baseUrl,
    credentials: {
      api_key: { config: { fields: [{ name: 'api_key', label: 'API key', type: 'password', required: true }] } },
    },
    authorization: { format: 'bearer', config: { token: '{{api_key}}' } },
    pagination: { format: 'cursor', config: { cursor_path: 'next', cursor_key: 'after', limit_key: 'per_page' } },
    retry: { max_attempts: 1 },
    actions: {
      test_simple_text: action('Returns a simple text.', '/text'),
      test_error_handling: action('Always fails.', '/failure'),
    },
    resources: {
      contacts: {
        list: { path: '/contacts', response_path: 'items', description: 'Lists contacts.' },
        get: { path: '/contacts/{{id}}', description: 'Gets one contact.' },
        delete: { method: 'DELETE', path: '/contacts/{{id}}', description: 'Deletes a contact.' },
      },
    },
  }
}
