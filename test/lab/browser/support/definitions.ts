import { CLIENT, type Profile } from '../peers/provider.ts'

const KEY_METHOD = {
  label: 'API key',
  config: {
    fields: [
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
      { name: 'confirmed', label: 'I may connect this account', type: 'checkbox' },
    ],
    verification: { method: 'GET', path: '/me' },
  },
}

/** A list with search and pages. */
export const WORKSPACES = {
  list: {
    path: '/workspaces',
    response_path: 'data',
    query: { q: '{{args.search}}' },
    pagination: { format: 'cursor', config: { cursor_path: 'next', cursor_key: 'cursor', limit_key: 'limit' } },
  },
}

const SETTINGS = {
  type: 'form',
  config: {
    fields: [
      {
        name: 'workspace',
        label: 'Workspace',
        type: 'single_select',
        required: true,
        data_source: { resource: 'workspaces', query: { q: '{{args.search}}' } },
        options: { value: 'id', label: 'name' },
      },
      {
        name: 'projects',
        label: 'Projects',
        type: 'multi_select',
        data_source: { resource: 'projects', query: { workspace: '{{workspace}}' } },
        options: { value: 'id', label: 'name' },
      },
      { name: 'note', label: 'Note', type: 'text' },
    ],
  },
}

/** A consent at one of the providers of the tests. @param paths of the authorise and token addresses */
export function consentMethod(
  url: string,
  paths: { readonly authorize: string; readonly token: string },
  scope: readonly string[],
) {
  return {
    label: 'Acme login',
    config: {
      client: { id: CLIENT.id, secret: CLIENT.secret },
      auth: { tokenHost: url, tokenPath: paths.token, authorizeHost: url, authorizePath: paths.authorize },
      options: { authorizationMethod: 'body', bodyFormat: 'form', scopeSeparator: ' ' },
      scope,
    },
  }
}

/** The definition of one profile of the provider, whose API is under the same path. */
export function definitionOf(profile: Profile, providerUrl: string): Readonly<Record<string, unknown>> {
  const paths = { authorize: `/${profile}/authorize`, token: `/${profile}/token` }
  const oauth2 = consentMethod(providerUrl, paths, ['contacts.read', 'contacts.write'])
  const verification = { method: 'GET', path: '/me' }
  return {
    label: 'Acme CRM',
    base_url: `${providerUrl}/${profile}`,
    credentials: { oauth2: { ...oauth2, config: { ...oauth2.config, verification } } },
    authorization: { format: 'bearer', config: { token: '{{oauth.token.access_token}}' } },
    resources: {},
  }
}

/** Accounts are connected with a key. */
export function keyDefinition(providerUrl: string, profile: Profile = 'plain'): Readonly<Record<string, unknown>> {
  return {
    label: 'Acme Keys',
    base_url: `${providerUrl}/${profile}`,
    credentials: { api_key: KEY_METHOD },
    authorization: { format: 'bearer', config: { token: '{{api_key}}' } },
    resources: { workspaces: WORKSPACES },
  }
}

/** A consent or a key. */
export function eitherDefinition(providerUrl: string): Readonly<Record<string, unknown>> {
  const { credentials, ...rest } = definitionOf('plain', providerUrl)
  return {
    ...rest,
    label: 'Acme Either',
    credentials: { ...(credentials as object), api_key: KEY_METHOD },
    authorization: { format: 'bearer', config: { token: '{{oauth.token.access_token|api_key}}' } },
  }
}

/** A form after the consent: workspaces with search and pages, and projects of the chosen one. */
export function settingsDefinition(providerUrl: string): Readonly<Record<string, unknown>> {
  return {
    ...definitionOf('plain', providerUrl),
    label: 'Acme Settings',
    resources: { workspaces: WORKSPACES, projects: { list: { path: '/projects', response_path: 'data' } } },
    actions: { post_connect_user_form: SETTINGS },
  }
}
