import { generateKeyPairSync } from 'node:crypto'
import type { Json, JsonObject } from '../../../src/foundation/json/index.ts'
import type { OAuthGoldenFile } from '../../unit/engine/catalog/oauth-requests.ts'

/** What the golden files of a provider lack. */
export interface ProviderTable {
  /** Key of the credential to connect by. Absent: the one with a consent, else the first. */
  readonly credential?: string
  /** Variables of the override beside those of the golden files. */
  readonly variables?: Readonly<Record<string, string>>
  /** What the customer fills in beside that. */
  readonly fields?: JsonObject
  /** The context that the link gives the account. */
  readonly context?: JsonObject
  /** Answers of other addresses, by URL without query, or by path alone. */
  readonly answers?: Readonly<Record<string, Json>>
  /** Texts of recorded answers, and what this provider says instead. */
  readonly answersSay?: readonly (readonly [from: string, to: string])[]
  /** Texts of recorded requests that belong to another account, and what they are for this one. */
  readonly recordedFor?: readonly (readonly [from: string, to: string])[]
  /**
   * `account`: deliveries are signed with a secret of the account, so they go to its address. `subscription`: only those of a
   * subscription are authentic, whose secret the product makes.
   */
  readonly webhook?: 'account' | 'subscription'
  /** Calls are made in the name of the application. */
  readonly callsWithoutToken?: true
  /** The API takes credentials in addresses, where a dry run masks them. */
  readonly secretInUrl?: true
  /** The token endpoint of a credential without a consent. */
  readonly token?: OAuthGoldenFile
}

/** The secret that recorded webhooks are signed with. */
const GOLDEN_SECRET = 'golden-webhook-secret'
const PEM = { type: 'pkcs8', format: 'pem' } as const
const EC_KEY = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export(PEM).toString()
const RSA_KEY = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export(PEM).toString()
const ATLASSIAN_SITE = '1324a887-45db-1bf4-1e99-ef0ff456d421'
/** The sites that a consent is for. */
const ATLASSIAN_SITES = {
  '/oauth/token/accessible-resources': [
    { id: ATLASSIAN_SITE, name: 'acme', url: 'https://acme.atlassian.net', scopes: [] },
  ],
}
const DAY_MS = 86_400_000

/** What each shipped definition goes through the rig with, beside its golden files. One without an entry fails the build. */
export const PROVIDERS: Readonly<Record<string, ProviderTable>> = {
  airtable: { context: { webhook_mac_secret: 'Z29sZGVuLXdlYmhvb2stc2VjcmV0' } },
  'amazon-s3': { answers: { '/': '<ListBucketResult/>' } },
  'amazon-selling-partner': {},
  apollo: {},
  'app-store-connect': {
    fields: { issuer_id: '57246542-96fe-1a63-e053-0824d011072a', key_id: '2X9R4HXF34', private_key: EC_KEY },
  },
  asana: { webhook: 'subscription' },
  ashby: {},
  bamboohr: {},
  basecamp: { answersSay: [['99999999', '99']] },
  bigcommerce: { fields: { store_hash: '3r4kdcd0' }, answersSay: [['abc123', '3r4kdcd0']] },
  bitbucket: {},
  box: {},
  calendly: { variables: { WEBHOOK_SECRET: GOLDEN_SECRET } },
  clerk: {},
  clickup: {},
  confluence: {
    answers: { ...ATLASSIAN_SITES, [`/ex/confluence/${ATLASSIAN_SITE}/wiki/api/v2/spaces`]: { results: [] } },
  },
  discord: {
    answers: {
      '/api/v10/applications/@me': {
        id: '1075000000000000001',
        name: 'Example',
        verify_key: 'aad387b80c34205ae16cb0564eda25db5182bcdafc18c99c5e3f8cec5752dded',
      },
    },
    callsWithoutToken: true,
    variables: { PUBLIC_KEY: 'aad387b80c34205ae16cb0564eda25db5182bcdafc18c99c5e3f8cec5752dded' },
  },
  docusign: {
    answers: {
      '/oauth/userinfo': {
        sub: '50d89ab1-dad5-4a0a-b410-92ee3110b970',
        accounts: [
          {
            account_id: 'c23357a7-4f00-47f5-8802-94d2b1fb9a29',
            is_default: true,
            account_name: 'Acme',
            base_uri: 'https://eu.docusign.net',
          },
        ],
      },
    },
  },
  dropbox: {},
  'facebook-ads': { context: { ad_account_id: '120330000337' } },
  figma: {},
  freshdesk: {},
  github: {},
  gitlab: { variables: { WEBHOOK_SECRET: GOLDEN_SECRET } },
  gmail: {},
  'google-calendar': { variables: { WEBHOOK_SECRET: GOLDEN_SECRET } },
  'google-drive': { webhook: 'subscription' },
  'google-sheets': {},
  'google-workspace': {},
  greenhouse: {},
  heroku: {},
  hibob: {},
  hubspot: {},
  hubstaff: {},
  instagram: { context: { user_id: '17841405822304914' } },
  intercom: { recordedFor: [['api.intercom.io', 'api.eu.intercom.io']] },
  jira: {
    answers: { ...ATLASSIAN_SITES, [`/ex/jira/${ATLASSIAN_SITE}/rest/api/3/myself`]: { accountId: 'a1' } },
    recordedFor: [['https://acme.atlassian.net', `https://api.atlassian.com/ex/jira/${ATLASSIAN_SITE}`]],
  },
  klaviyo: { context: { account_id: 'XyZ123' } },
  linear: {},
  linkedin: { context: { organization_urn: 'urn:li:organization:2414183' } },
  mailchimp: {},
  'microsoft-graph': { variables: { WEBHOOK_SECRET: GOLDEN_SECRET } },
  'microsoft-teams': {},
  mixpanel: {},
  monday: {},
  netsuite: {},
  notion: { variables: { WEBHOOK_SECRET: GOLDEN_SECRET } },
  okta: {},
  'open-meteo': {},
  openai: {},
  outlook: {},
  paypal: {
    fields: { client_id: 'the-client', client_secret: 'the-secret' },
    token: tokenOf('https://api-m.paypal.com/v1/oauth2/token', { access_token: 'A21AA', expires_in: 32400 }, 32_400),
  },
  pipedrive: { variables: { WEBHOOK_PASSWORD: GOLDEN_SECRET } },
  quickbooks: { answers: { '/v3/company/310687/companyinfo/310687': { CompanyInfo: { Id: '1' } } } },
  reddit: {},
  salesforce: {},
  sendgrid: {},
  shopify: { answersSay: [] },
  slack: {},
  spotify: {},
  square: {
    answersSay: [
      ['2026-01-31T00:00:00Z', inDays(30)],
      ['MLQW5S1QK0A1J', '6SSW7HV8K2ST5'],
    ],
  },
  strava: { variables: { WEBHOOK_VERIFY_TOKEN: 'the-verify-token' } },
  stripe: {},
  tableau: {
    token: tokenOf(
      'https://10ax.online.tableau.com/api/3.22/auth/signin',
      {
        credentials: {
          token: 'HvZMqFFfQQmOM4L',
          estimatedTimeToExpiration: '239:58:20',
          site: { id: '8b2a0a2f-9d1c-4a7e-a2c5-7f3b1c9d0e11' },
          user: { id: 'u1' },
        },
      },
      863_880,
    ),
  },
  tiktok: { context: { open_id: 'act.example12345Example12345Example' } },
  trello: { secretInUrl: true, recordedFor: [['key=k&token=t', 'key=the-key&token=access-1']] },
  twilio: { webhook: 'account', fields: { auth_token: GOLDEN_SECRET } },
  typeform: { variables: { WEBHOOK_SECRET: GOLDEN_SECRET } },
  woocommerce: {},
  workable: {},
  x: { context: { user_id: '2244994945' } },
  xero: { answersSay: [['45e4708e-d862-4111-ab3a-dd8cd03913e1', 'c2cc9b6e-9458-4c7d-93cc-f02b81b0594f']] },
  zendesk: { variables: { WEBHOOK_SECRET: GOLDEN_SECRET } },
  'zoho-crm': {},
  zoom: { answersSay: [['q6gBJVO5TzexKYTb_I2rpg', 'AAAAAABBBB']] },
}

/** Further ways to connect, by definition and key of the credential. */
export const OTHER_CREDENTIALS: Readonly<Record<string, ProviderTable>> = {
  'airtable api_key': {},
  'apollo api_key': { fields: { api_key: 'the-api-key' } },
  'asana api_key': { webhook: 'subscription' },
  'bamboohr api_key': {},
  'bigcommerce api_key': {},
  'bitbucket api_key': {},
  'calendly api_key': {
    fields: { api_key: 'the-api-key' },
    answers: {
      '/users/me': {
        resource: {
          uri: 'https://api.calendly.com/users/U1',
          current_organization: 'https://api.calendly.com/organizations/O1',
        },
      },
    },
  },
  'clickup api_key': { fields: { api_key: 'the-api-key' } },
  'confluence api_key': {
    fields: { site_url: 'https://acme.atlassian.net', email: 'fred@example.com', api_token: 't0ken' },
    recordedFor: [['https://api.atlassian.com/ex/confluence/c1', 'https://acme.atlassian.net']],
  },
  'discord api_key': {},
  'docusign jwt': {
    fields: {
      oauth_host: 'account.docusign.com',
      integration_key: '7c2b8d7e-83c3-4940-af5e-cda8a50dd73f',
      user_id: '50d89ab1-dad5-4a0a-b410-92ee3110b970',
      private_key: RSA_KEY,
    },
    token: tokenOf('https://account.docusign.com/oauth/token', { access_token: 'eyJ0.token', expires_in: 3600 }, 3_600),
  },
  'figma api_key': { fields: { api_key: 'the-api-key' } },
  'github api_key': {},
  'gitlab api_key': {},
  'gmail jwt': {
    fields: { client_email: 'name@project.iam.gserviceaccount.com', private_key: RSA_KEY, subject: 'user@example.com' },
    token: tokenOf('https://oauth2.googleapis.com/token', { access_token: 'ya29.token', expires_in: 3599 }, 3_599),
  },
  'google-calendar jwt': {
    fields: { client_email: 'name@project.iam.gserviceaccount.com', private_key: RSA_KEY, subject: 'user@example.com' },
    token: tokenOf('https://oauth2.googleapis.com/token', { access_token: 'ya29.token', expires_in: 3599 }, 3_599),
  },
  'heroku api_key': {},
  'hubspot api_key': {},
  'intercom api_key': {},
  'jira api_key': {},
  'klaviyo api_key': { fields: { api_key: 'the-api-key' } },
  'linear api_key': {},
  'mailchimp api_key': {},
  'microsoft-graph oauth2_client_credentials': {
    fields: {
      directory_id: '8eaef023-2b34-4da1-9baa-8bc8c9d6a490',
      client_id: '11112222-bbbb-3333-cccc-4444dddd5555',
      client_secret: 'the-secret',
      user: 'user@example.com',
    },
    token: tokenOf(
      'https://login.microsoftonline.com/8eaef023-2b34-4da1-9baa-8bc8c9d6a490/oauth2/v2.0/token',
      { access_token: 'eyJ0.token', token_type: 'Bearer', expires_in: 3599 },
      3_599,
    ),
  },
  'monday api_key': { fields: { api_key: 'the-api-key' } },
  'netsuite api_key': {},
  'notion api_key': {},
  'okta api_key': {},
  'okta oauth2_client_credentials': {
    fields: { client_id: '0oa1', key_id: 'the-key', private_key: RSA_KEY },
    token: tokenOf('https://acme.okta.com/oauth2/v1/token', { access_token: 'eyJ0.token', expires_in: 3600 }, 3_600),
  },
  'pipedrive api_key': {},
  'shopify api_key': {},
  'slack api_key': { fields: { api_key: 'xoxb-token' } },
  'stripe api_key': {},
  'trello api_key': { secretInUrl: true },
  'typeform api_key': { fields: { api_key: 'the-api-key' } },
  'workable api_key': { fields: { api_key: 'the-api-key' } },
  'zendesk api_key': {},
  'zoom oauth2_client_credentials': {
    fields: { account_id: 'AAAAAABBBB', client_id: 'the-client', client_secret: 'the-secret' },
    token: tokenOf('https://zoom.us/oauth/token', { access_token: 'eyJ0.token', expires_in: 3600 }, 3_600),
  },
}

/** A token endpoint that is asked again when its token ends. */
function tokenOf(url: string, answer: JsonObject, seconds: number): OAuthGoldenFile {
  const exchange = { method: 'POST', url, headers: {} }
  return { authorize: '', redirect: {}, exchange, refresh: exchange, answer, expires_in: seconds }
}

function inDays(days: number): string {
  return new Date(Date.now() + days * DAY_MS).toISOString()
}
