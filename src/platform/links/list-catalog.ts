import { foldText, searchWords } from '../../foundation/base/index.ts'
import type { Db, IdPage } from '../../foundation/database/index.ts'
import { type CatalogRow, selectCatalogRows } from '../integrations/sql/catalog.ts'
import { listMappedModelsByIntegration } from '../unified-config/mapped-models.ts'
import { type CatalogDescription, matchesSearch } from './catalog-entry.ts'
import { fixedInstallations } from './choices.ts'
import type { LinkDependencies } from './dependencies.ts'
import { toLinkSession } from './load-session.ts'
import { findLinkSessionById } from './sql/link-session.ts'

/** What to list of a catalogue; an undefined field, and empty tags, do not restrict. */
export interface CatalogFilter {
  readonly category: string | undefined
  readonly isBeta: boolean | undefined
  /** At least one of these, without case and accents. */
  readonly tags: readonly string[]
  /** Every word of it occurs in name, label, description, category or tags. */
  readonly q: string | undefined
}

/** An installed integration as a catalogue shows it. `id` is that of the installation. */
export interface CatalogEntry extends CatalogRow {
  readonly description: CatalogDescription
  readonly unifiedModels: readonly string[]
}

type CatalogDependencies = Pick<LinkDependencies, 'database' | 'catalog'>

/** Whose catalogue it is. @property linkSessionId of the link whose token was presented; absent: an API token */
export interface CatalogScope {
  readonly environmentId: string
  readonly linkSessionId: string | undefined
}

/**
 * At most `limit` entries below the id `before`, newest first. A link sees those that it may connect, with the methods that its
 * customer can use now.
 *
 * Descriptions are cached; those filters that concern them are applied to the rows that the database finds.
 */
export async function listCatalog(
  deps: CatalogDependencies,
  scope: CatalogScope,
  filter: CatalogFilter,
  page: IdPage,
): Promise<readonly CatalogEntry[]> {
  const { pool } = deps.database
  const offer = await findOffer(pool, scope)
  if (offer === undefined) return []
  const found: Omit<CatalogEntry, 'unifiedModels'>[] = []
  const matches = matcherOf(filter)
  let { before } = page
  let rows: readonly CatalogRow[]
  do {
    rows = await selectCatalogRows(pool, scope.environmentId, { ...filter, ids: offer.ids }, { ...page, before })
    for (const row of rows) {
      const description = await deps.catalog.find(pool, row)
      const shown = description && (offer.isLink ? connectableOf(description, offer.credentials) : description)
      if (shown !== undefined && matches(shown) && found.length < page.limit) found.push({ ...row, description: shown })
    }
    before = rows.at(-1)?.id
  } while (found.length < page.limit && rows.length === page.limit)
  const names = [...new Set(found.map(({ integrationName }) => integrationName))]
  const models = await listMappedModelsByIntegration(pool, scope.environmentId, names)
  return found.map((entry) => ({ ...entry, unifiedModels: models.get(entry.integrationName) ?? [] }))
}

/** What a caller may see. */
interface CatalogOffer {
  /** Of installations; absent: every one that the catalogue shows. */
  readonly ids: readonly string[] | undefined
  /** Keys of credentials. Null: all. */
  readonly credentials: readonly string[] | null
  readonly isLink: boolean
}

/** `undefined` when the link was deleted. */
async function findOffer(tx: Db, { linkSessionId }: CatalogScope): Promise<CatalogOffer | undefined> {
  if (linkSessionId === undefined) return { ids: undefined, credentials: null, isLink: false }
  const record = await findLinkSessionById(tx, linkSessionId)
  if (record === undefined) return undefined
  const session = toLinkSession(record)
  return { ids: fixedInstallations(session), credentials: session.allowedCredentials, isLink: true }
}

function matcherOf({ tags, q = '' }: CatalogFilter): (description: CatalogDescription) => boolean {
  const [words, wanted] = [searchWords(q), tags.map(foldText)]
  return (description) =>
    matchesSearch(description, words) &&
    (wanted.length === 0 || description.tags.some((tag) => wanted.includes(foldText(tag))))
}

/** The description with the methods that the link's customer may and can use; `undefined` when none can be used. */
function connectableOf(
  description: CatalogDescription,
  credentials: readonly string[] | null,
): CatalogDescription | undefined {
  const authMethods = description.authMethods.filter(
    ({ credential, isConnectable }) => isConnectable && (credentials?.includes(credential) ?? true),
  )
  const needsNone = description.authMethods.length === 0 && credentials === null
  return authMethods.length > 0 || needsNone ? { ...description, authMethods } : undefined
}
