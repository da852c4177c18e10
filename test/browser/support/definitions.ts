import { CLIENT, PROFILES, type Profile } from '../peers/provider.ts'

const KEY_FIELDS = [
  {
    name: 'subdomain',
    label: 'Subdomain',
    type: 'text',
    required: true,
    format: 'hostname_label',
    prefix: 'https://',
    suffix: '.example.com',
    help_text: 'The first part of the address where you sign in.',
  },
  { name: 'api_key', label: 'API key', type: 'password', required: true, transform: 'trim' },
  {
    name: 'plan',
    label: 'Plan',
    type: 'single_select',
    options: [
      { value: 'free', label: 'Free' },
      { value: 'paid', label: 'Paid' },
    ],
  },
]

const SETTINGS_FORM = {
  fields: [
    {
      name: 'workspace',
      label: 'Workspace',
      type: 'single_select',
      required: true,
      data_source: {
        type: 'request',
        config: { method: 'GET', path: '/workspaces', query: { q: '{{query}}', cursor: '{{cursor}}' } },
      },
    },
  ],
}

/** The definition of one profile of the provider. Its API is under the same path. */
export function definitionOf(profile: Profile, providerUrl: string): object {
  const base = `${providerUrl}/${profile}`
  return {
    label: `Acme ${profile}`,
    base_url: base,
    credentials: {
      oauth2: {
        label: 'Acme login',
        config: {
          client: { id: CLIENT.id, secret: CLIENT.secret },
          auth: {
            tokenHost: providerUrl,
            tokenPath: `/${profile}/token`,
            authorizeHost: providerUrl,
            authorizePath: `/${profile}/authorize`,
          },
          options: { authorizationMethod: 'body', bodyFormat: 'form', scopeSeparator: ' ' },
          scope: ['contacts.read', 'contacts.write'],
          verification: { method: 'GET', path: '/me' },
        },
      },
    },
    authorization: { format: 'bearer', config: { token: '{{oauth.token.access_token}}' } },
    resources: {},
  }
}

/** A provider whose accounts are connected with a key. */
export function keyDefinition(providerUrl: string): object {
  return {
    label: 'Acme keys',
    base_url: `${providerUrl}/plain`,
    credentials: { api_key: { config: { fields: KEY_FIELDS, verification: { method: 'GET', path: '/me' } } } },
    authorization: { format: 'bearer', config: { token: '{{api_key}}' } },
    resources: {},
  }
}

export { PROFILES, SETTINGS_FORM }
