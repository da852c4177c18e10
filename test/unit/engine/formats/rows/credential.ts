import type { Json, JsonObject } from '../../../../../src/foundation/json/index.ts'

/** One promise of a credential format: these given values are taken apart like this, or rejected at these fields. */
export interface CredentialRow {
  readonly promise: string
  readonly config?: Json
  readonly given: JsonObject
  readonly secrets?: JsonObject
  readonly visible?: JsonObject
  /** `field rule` of every violation. */
  readonly violations?: readonly string[]
}

const CLIENT = { client: { id: 'i', secret: '{{environment_variables.SECRET}}' } }

export const CREDENTIAL_ROWS: Readonly<Record<string, readonly CredentialRow[]>> = {
  api_key: [
    { promise: 'asks for one secret key by default', given: { api_key: 'k' }, secrets: { api_key: 'k' } },
    { promise: 'rejects what is missing', given: {}, violations: ['credentials.api_key required'] },
    { promise: 'an empty value is missing', given: { api_key: '' }, violations: ['credentials.api_key required'] },
    {
      promise: 'rejects the mask of a secret',
      given: { api_key: '***' },
      violations: ['credentials.api_key secret_masked'],
    },
    {
      promise: 'rejects what is not asked for, and reports everything at once',
      given: { api_kye: 'k' },
      violations: ['credentials.api_kye unknown_field', 'credentials.api_key required'],
    },
    {
      promise: 'keeps secrets apart from what may be shown',
      config: {
        fields: [
          { name: 'username', required: true },
          { name: 'password', type: 'password', required: true },
          { name: 'site', default: 'eu' },
          { name: 'note' },
        ],
      },
      given: { username: 'u', password: 'p' },
      secrets: { password: 'p' },
      visible: { username: 'u', site: 'eu' },
    },
    {
      promise: 'transforms before it checks, and takes prefix and suffix off',
      config: {
        fields: [
          {
            name: 'subdomain',
            transform: 'lowercase',
            prefix: 'https://',
            suffix: '.example.com',
            format: 'hostname_label',
          },
        ],
      },
      given: { subdomain: 'HTTPS://Acme.example.com' },
      visible: { subdomain: 'acme' },
    },
    {
      promise: 'checks formats, choices and patterns',
      config: {
        fields: [
          { name: 'email', format: 'email' },
          { name: 'count', format: 'number' },
          { name: 'key', format: 'uuid' },
          { name: 'site', format: 'url' },
          { name: 'label', format: 'hostname_label' },
          { name: 'region', type: 'single_select', options: [{ value: 'eu' }, { value: 'us' }] },
          { name: 'code', pattern: '[A-Z]{2}-\\d+' },
          { name: 'list' },
        ],
      },
      given: {
        email: 'a',
        count: '1x',
        key: '1',
        site: 'ftp://x',
        label: 'a.b',
        region: 'mars',
        code: 'xAB-1',
        list: ['a'],
      },
      violations: [
        'credentials.email string.email',
        'credentials.count string.number',
        'credentials.key string.uuid',
        'credentials.site string.url',
        'credentials.label string.hostname_label',
        'credentials.region enum',
        'credentials.code string.pattern',
        'credentials.list type',
      ],
    },
    {
      promise: 'accepts good values of all of them',
      config: {
        fields: [
          { name: 'email', format: 'email' },
          { name: 'count', format: 'number' },
          { name: 'site', format: 'url' },
          { name: 'region', type: 'single_select', options: [{ value: 'eu' }] },
          { name: 'code', pattern: '[A-Z]{2}-\\d+' },
        ],
      },
      given: { email: 'a@b.example', count: 12, site: 'https://x.example', region: 'eu', code: 'AB-12' },
      visible: { email: 'a@b.example', count: '12', site: 'https://x.example', region: 'eu', code: 'AB-12' },
    },
  ],
  oauth2: [
    { promise: 'asks for nothing but the redirect', config: CLIENT, given: {} },
    {
      promise: 'asks for fields before the redirect',
      config: { ...CLIENT, fields: [{ name: 'subdomain', required: true }] },
      given: { subdomain: 'acme' },
      visible: { subdomain: 'acme' },
    },
    {
      promise: 'takes another name for one parameter without naming the others',
      config: { ...CLIENT, authorize: { parameter_names: { client_id: 'client_key' } } },
      given: {},
    },
  ],
  oauth2_client_credentials: [
    {
      promise: 'asks for client id and secret by default',
      config: {},
      given: { client_id: 'i', client_secret: 's' },
      secrets: { client_secret: 's' },
      visible: { client_id: 'i' },
    },
  ],
  oauth1: [
    {
      promise: 'asks for fields before the redirect',
      config: {
        request_token_url: 'https://api.example.com/request',
        authorize_url: 'https://api.example.com/authorize',
        access_token_url: 'https://api.example.com/access',
        fields: [{ name: 'team', required: true }],
      },
      given: { team: 'acme' },
      visible: { team: 'acme' },
    },
  ],
  vendor_oauth: [
    {
      promise: 'asks for what the exchange needs',
      config: {
        fields: [{ name: 'pin', type: 'password' }],
        token_request: { path: '/login' },
        token_expression: 'body.token',
      },
      given: { pin: '1' },
      secrets: { pin: '1' },
    },
  ],
  jwt: [
    {
      promise: 'asks for the key',
      config: { fields: [{ name: 'key', type: 'password' }], algorithm: 'RS256', key: '{{key}}', claims: { iss: 'x' } },
      given: { key: 'pem' },
      secrets: { key: 'pem' },
    },
  ],
}
