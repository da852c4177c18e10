/**
 * Writes the logos of the shipped definitions, `src/engine/catalog/logos/<name>.svg`, from two packages of icons that are in the public
 * domain (CC0): in colour from `@iconify-json/logos`, else as the one-coloured mark of `@iconify-json/simple-icons`. The packages
 * are needed here alone. A product without a mark of its own has that of the company. A definition that neither package has is without
 * a logo, and pages show its initials; the README of the engine names these.
 */
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'

/** The format of `icons.json` in packages of Iconify. */
interface IconSet {
  readonly width?: number
  readonly height?: number
  readonly icons: Readonly<Record<string, Icon>>
}

interface Icon {
  /** SVG markup. */
  readonly body: string
  readonly left?: number
  readonly top?: number
  readonly width?: number
  readonly height?: number
}

const require = createRequire(import.meta.url)
const FOLDER = join(import.meta.dirname, '../../engine/catalog/logos')

/** Names in `@iconify-json/logos`, by definition. */
const COLOURED: Readonly<Record<string, string>> = {
  airtable: 'airtable',
  'amazon-s3': 'aws-s3',
  'app-store-connect': 'apple-app-store',
  asana: 'asana-icon',
  basecamp: 'basecamp-icon',
  bitbucket: 'bitbucket',
  clerk: 'clerk-icon',
  clickup: 'clickup-icon',
  confluence: 'confluence',
  discord: 'discord-icon',
  dropbox: 'dropbox',
  'facebook-ads': 'facebook',
  figma: 'figma',
  github: 'github-icon',
  gitlab: 'gitlab-icon',
  gmail: 'google-gmail',
  'google-calendar': 'google-calendar',
  'google-drive': 'google-drive',
  'google-workspace': 'google-icon',
  heroku: 'heroku-icon',
  instagram: 'instagram-icon',
  intercom: 'intercom-icon',
  jira: 'jira',
  linear: 'linear-icon',
  linkedin: 'linkedin-icon',
  mailchimp: 'mailchimp-icon',
  'microsoft-graph': 'microsoft-icon',
  'microsoft-teams': 'microsoft-teams',
  monday: 'monday-icon',
  notion: 'notion-icon',
  okta: 'okta-icon',
  openai: 'openai-icon',
  paypal: 'paypal',
  reddit: 'reddit-icon',
  salesforce: 'salesforce',
  sendgrid: 'sendgrid-icon',
  shopify: 'shopify',
  slack: 'slack-icon',
  spotify: 'spotify-icon',
  square: 'square',
  tableau: 'tableau-icon',
  tiktok: 'tiktok-icon',
  trello: 'trello',
  twilio: 'twilio-icon',
  typeform: 'typeform-icon',
  woocommerce: 'woocommerce-icon',
  x: 'x',
  xero: 'xero',
  zendesk: 'zendesk-icon',
  zoom: 'zoom-icon',
}

/** Names in `@iconify-json/simple-icons` with the colour of the brand, by definition. */
const ONE_COLOURED: Readonly<Record<string, readonly [icon: string, color: string]>> = {
  'amazon-selling-partner': ['amazon', '#ff9900'],
  bigcommerce: ['bigcommerce', '#121118'],
  box: ['box', '#0061d5'],
  calendly: ['calendly', '#006bff'],
  docusign: ['docusign', '#4c00ff'],
  'google-sheets': ['googlesheets', '#34a853'],
  greenhouse: ['greenhouse', '#24a47f'],
  hibob: ['hibob', '#e42c51'],
  hubspot: ['hubspot', '#ff7a59'],
  mixpanel: ['mixpanel', '#7856ff'],
  netsuite: ['oracle', '#f80000'],
  outlook: ['microsoftoutlook', '#0078d4'],
  quickbooks: ['quickbooks', '#2ca01c'],
  strava: ['strava', '#fc4c02'],
  stripe: ['stripe', '#635bff'],
  'zoho-crm': ['zoho', '#c8202b'],
}

/** Every logo, by the name of its file. @throws Error for a name that a package does not have */
export function renderLogos(): ReadonlyMap<string, string> {
  const logos: IconSet = require('@iconify-json/logos/icons.json')
  const marks: IconSet = require('@iconify-json/simple-icons/icons.json')
  const coloured = Object.entries(COLOURED).map(([name, icon]) => [name, renderIcon(logos, icon)] as const)
  const oneColoured = Object.entries(ONE_COLOURED).map(
    ([name, [icon, color]]) => [name, renderIcon(marks, icon).replaceAll('currentColor', color)] as const,
  )
  return new Map([...coloured, ...oneColoured].map(([name, svg]) => [`${name}.svg`, svg]))
}

/** The logos as they are stored, by the name of their file. */
export function readLogos(): ReadonlyMap<string, string> {
  return new Map(readdirSync(FOLDER).map((file) => [file, readFileSync(join(FOLDER, file), 'utf8')]))
}

/** The icon in the middle of a square, so that all logos have the same size. */
function renderIcon(set: IconSet, name: string): string {
  const icon = set.icons[name]
  if (icon === undefined) throw new Error(`there is no icon ${name}`)
  const { left = 0, top = 0, body } = icon
  const [width, height] = [icon.width ?? set.width ?? 16, icon.height ?? set.height ?? 16]
  const side = Math.max(width, height)
  const origin = `${left - (side - width) / 2} ${top - (side - height) / 2}`
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="${origin} ${side} ${side}">${body}</svg>\n`
}

function main(): void {
  rmSync(FOLDER, { recursive: true, force: true })
  mkdirSync(FOLDER)
  for (const [file, svg] of renderLogos()) writeFileSync(join(FOLDER, file), svg)
}

if (import.meta.main) main()
