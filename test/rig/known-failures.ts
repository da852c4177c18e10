import type { Step } from './journey.ts'

/**
 * Defects of the product that the rig has found, as a step of a definition and the reason it fails with. One that no longer occurs
 * has to go: the table is to become empty.
 */
export interface KnownFailure {
  readonly step: Step
  readonly reason: string
  readonly names: readonly string[]
}

/** All of them, in the order of the steps. */
export const KNOWN_FAILURES: readonly KnownFailure[] = [
  {
    step: 'install',
    reason:
      'override.environment_variables.CLIENT_SECRET would be sent to a host that accounts decide ({{context.api_url|site_url}}): limit its values with a pattern, or name the domain',
    names: ['confluence'],
  },
  {
    step: 'install',
    reason:
      'override.environment_variables.CLIENT_SECRET would be sent to a host that accounts decide ({{context.base_uri}}/restapi/v2.1/accounts/{{context.account_id}}): limit its values with a pattern, or name the domain (and 2 more)',
    names: ['docusign'],
  },
  {
    step: 'install',
    reason:
      'override.environment_variables.CLIENT_SECRET would be sent to a host that accounts decide (https://{{host|env.GITLAB_HOST?:gitlab.com}}/api/v4): limit its values with a pattern, or name the domain (and 1 more)',
    names: ['gitlab'],
  },
  {
    step: 'install',
    reason:
      'override.environment_variables.CLIENT_SECRET would be sent to a host that accounts decide ({{context.api_url|site_url}}): limit its values with a pattern, or name the domain (and 1 more)',
    names: ['jira'],
  },
  {
    step: 'install',
    reason:
      'override.environment_variables.CLIENT_SECRET would be sent to a host that accounts decide (https://{{domain}}/api/v1): limit its values with a pattern, or name the domain (and 1 more)',
    names: ['okta'],
  },
  {
    step: 'install',
    reason:
      'override.environment_variables.CLIENT_SECRET would be sent to a host that accounts decide ({{api_domain}}): limit its values with a pattern, or name the domain (and 1 more)',
    names: ['pipedrive'],
  },
  {
    step: 'install',
    reason:
      'override.environment_variables.CLIENT_SECRET would be sent to a host that accounts decide ({{context.instance_url}}): limit its values with a pattern, or name the domain (and 1 more)',
    names: ['salesforce'],
  },
  {
    step: 'install',
    reason:
      'override.environment_variables.WEBHOOK_SECRET would be sent to a host that accounts decide ({{server_url}}/api/{{api_version?:3.22}}): limit its values with a pattern, or name the domain',
    names: ['tableau'],
  },
  {
    step: 'install',
    reason:
      'override.environment_variables.WEBHOOK_SECRET would be sent to a host that accounts decide ({{store_url}}/wp-json/wc/v3): limit its values with a pattern, or name the domain',
    names: ['woocommerce'],
  },
  {
    step: 'install',
    reason:
      'override.environment_variables.CLIENT_SECRET would be sent to a host that accounts decide ({{context.api_domain}}/crm/v8): limit its values with a pattern, or name the domain (and 1 more)',
    names: ['zoho-crm'],
  },
  {
    step: 'context',
    reason: 'masked in the context: user_uri',
    names: ['calendly'],
  },
  {
    step: 'context',
    reason: 'masked in the context: application_id',
    names: ['discord'],
  },
  {
    step: 'context',
    reason: 'masked in the context: workspace_name',
    names: ['notion'],
  },
  {
    step: 'context',
    reason: 'masked in the context: team_id, team_name, bot_user_id',
    names: ['slack'],
  },
  {
    step: 'context',
    reason: 'masked in the context: account_id',
    names: ['stripe'],
  },
  {
    step: 'calls',
    reason: 'employees.create: masked in the address: https://***.bamboohr.com/api/v1/employees',
    names: ['bamboohr'],
  },
  {
    step: 'calls',
    reason: 'products.update: masked in the address: https://api.bigcommerce.com/***/v3/catalog/products/77',
    names: ['bigcommerce'],
  },
  {
    step: 'webhook',
    reason: 'the context says application_id ***, the delivery 1075000000000000001',
    names: ['discord'],
  },
  {
    step: 'webhook',
    reason: 'the context says team_id ***, the delivery T061EG9R6',
    names: ['slack'],
  },
  {
    step: 'webhook',
    reason: 'the context says account_id ***, the delivery acct_1032D82eZvKYlo2C',
    names: ['stripe'],
  },
  {
    step: 'reconnect',
    reason: 'changed in the context: kept_by_the_customer',
    names: [
      'amazon-s3',
      'amazon-selling-partner',
      'apollo',
      'app-store-connect',
      'asana',
      'ashby',
      'bamboohr',
      'basecamp',
      'bigcommerce',
      'bitbucket',
      'box',
      'clerk',
      'clickup',
      'discord',
      'dropbox',
      'figma',
      'freshdesk',
      'github',
      'gmail',
      'google-calendar',
      'google-drive',
      'google-sheets',
      'google-workspace',
      'greenhouse',
      'heroku',
      'hibob',
      'hubspot',
      'hubstaff',
      'intercom',
      'linear',
      'mailchimp',
      'microsoft-graph',
      'microsoft-teams',
      'mixpanel',
      'monday',
      'netsuite',
      'notion',
      'open-meteo',
      'openai',
      'outlook',
      'paypal',
      'quickbooks',
      'reddit',
      'sendgrid',
      'shopify',
      'slack',
      'spotify',
      'square',
      'strava',
      'stripe',
      'trello',
      'twilio',
      'typeform',
      'workable',
      'xero',
      'zendesk',
      'zoom',
      'github api_key',
      'gmail jwt',
      'hubspot api_key',
      'notion api_key',
      'shopify api_key',
      'slack api_key',
      'stripe api_key',
      'zendesk api_key',
    ],
  },
  {
    step: 'reconnect',
    reason: 'changed in the context: webhook_mac_secret, kept_by_the_customer',
    names: ['airtable', 'airtable api_key'],
  },
  {
    step: 'reconnect',
    reason: 'changed in the context: user_id, kept_by_the_customer',
    names: ['instagram', 'x'],
  },
  {
    step: 'reconnect',
    reason: 'changed in the context: user_uri, kept_by_the_customer',
    names: ['calendly'],
  },
  {
    step: 'reconnect',
    reason: 'changed in the context: ad_account_id, kept_by_the_customer',
    names: ['facebook-ads'],
  },
  {
    step: 'reconnect',
    reason: 'changed in the context: account_id, kept_by_the_customer',
    names: ['klaviyo'],
  },
  {
    step: 'reconnect',
    reason: 'changed in the context: organization_urn, kept_by_the_customer',
    names: ['linkedin'],
  },
  {
    step: 'reconnect',
    reason: 'changed in the context: open_id, kept_by_the_customer',
    names: ['tiktok'],
  },
  {
    step: 'second account',
    reason: 'the grant that the other account uses was revoked',
    names: [
      'asana',
      'box',
      'calendly',
      'discord',
      'facebook-ads',
      'gmail',
      'google-calendar',
      'google-drive',
      'google-sheets',
      'google-workspace',
      'hubspot',
      'klaviyo',
      'linear',
      'notion',
      'quickbooks',
      'reddit',
      'slack',
      'square',
      'strava',
      'tiktok',
      'x',
      'xero',
      'zoom',
    ],
  },
]
