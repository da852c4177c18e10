import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import jsonata from 'jsonata'
import { compileExpression, evaluateInline } from '../../../src/engine/expressions/evaluator.ts'
import { createEvaluator } from '../../../src/engine/expressions/index.ts'
import { registerFunctions } from '../../../src/engine/expressions/sandbox/functions.ts'
import { compileMapping, mergeMappings, parseModel } from '../../../src/engine/unified/index.ts'
import { mapRecords } from '../../../src/engine/unified/map-records.ts'
import { isJsonObject, type Json, type JsonObject, parseJson } from '../../../src/foundation/json/index.ts'
import { reportAtMost, reportBaseline } from './support/report.ts'

const RECORDS = 100
const ROUNDS = 200
/** Rounds of JSONata, which takes some hundred times as long. */
const SLOW_ROUNDS = 5
const US_MAX = 20

const MODEL = join(import.meta.dirname, '../../../src/engine/catalog/unified/models/crm.json')

/** A contact of a CRM: custom properties, lists of emails, phones and addresses, dates in three notations. */
const CONTACTS = Array.from({ length: RECORDS }, (_, index) => ({
  id: 1_000 + index,
  properties: {
    firstname: `First${index}`,
    lastname: 'Last',
    jobtitle: index % 3 === 0 ? '' : 'Engineer',
    department: 'R&D',
    lifecyclestage: ['lead', 'customer', 'marketingqualifiedlead', 'unknown'][index % 4],
    lastmodifieddate: '2024-01-31T10:15:00Z',
    createdate: 1_706_696_100_000 + index,
    notes_last_contacted: '2024-01-31 09:00:00',
    hs_lead_status: null,
    company: 'Ada & Sons',
  },
  associations: { company: { id: 7, name: 'Ada & Sons' }, owner: { id: 9, firstName: 'O', lastName: 'Wner' } },
  emails: [
    { type: 'work', value: `a${index}@example.com`, primary: true },
    { type: 'home', value: `b${index}@example.com`, primary: false },
  ],
  phones: [{ kind: 'MOBILE', number: '+49 30 1' }],
  addresses: [{ street: 'Road 1', town: 'Berlin', zip: '10115', country: 'DE', kind: 'BILLING' }],
  websites: ['https://example.com'],
  labels: [{ id: 1, label: 'vip' }],
  archived: false,
}))

/** Twenty expressions, of which several return lists of objects. */
const FIELDS: Readonly<Record<string, string>> = {
  id: 'id',
  first_name: 'properties.firstname',
  last_name: 'properties.lastname',
  name: '$trim(properties.firstname & " " & properties.lastname)',
  title: '$firstNonEmpty(properties.jobtitle, properties.role)',
  department: 'properties.department',
  'account.id': '$string(associations.company.id)',
  'account.name': 'associations.company.name',
  'owner.id': '$string(associations.owner.id)',
  'owner.name': 'associations.owner.(firstName & " " & lastName)',
  emails: 'emails.{"address": value, "type": type = "home" ? "personal" : type, "is_primary": primary}',
  phones: 'phones.{"number": number, "type": $lowercase(kind)}',
  addresses:
    'addresses.{"street_1": street, "city": town, "postal_code": zip, "country": country, "type": $lowercase(kind)}',
  urls: '$map(websites, function($url) { {"url": $url} })',
  lifecycle_stage:
    '$mapValue(properties.lifecyclestage, {"lead": "lead", "customer": "customer", "marketingqualifiedlead": "mql"}, "other")',
  tags: 'labels.{"id": $string(id), "name": label}',
  last_activity_at: '$isoDate(properties.notes_last_contacted)',
  created_at: '$isoDate(properties.createdate)',
  updated_at: 'properties.lastmodifieddate',
  deleted: 'archived = true',
}

/** Microseconds per record: the leaves as a function written by hand, compiled, in JSONata in this process; and mapped whole. */
export async function run(): Promise<void> {
  const byHand = await timePerRecord(ROUNDS, () => CONTACTS.map(mapByHand))
  const leaves = Object.values(FIELDS).map(compiled)
  const compiledUs = await timePerRecord(ROUNDS, () => CONTACTS.map((contact) => leaves.map((leaf) => leaf(contact))))
  const expressions = Object.values(FIELDS).map((text) => {
    const expression = jsonata(text)
    registerFunctions(expression)
    return expression
  })
  const jsonataUs = await timePerRecord(SLOW_ROUNDS, async () => {
    for (const contact of CONTACTS) for (const expression of expressions) await expression.evaluate(contact)
  })
  reportBaseline('unified-map/by-hand', byHand, 'us')
  reportBaseline('unified-map/jsonata', jsonataUs, 'us')
  reportAtMost('unified-map/leaves', compiledUs, 'us', US_MAX)
  reportAtMost('unified-map/records', await timeOfEngine(), 'us', US_MAX)
}

/** The engine: leaves, coercion to the schema and identifiers. */
async function timeOfEngine(): Promise<number> {
  await using evaluator = createEvaluator()
  const document = parseJson(readFileSync(MODEL, 'utf8'))
  const model = parseModel(isJsonObject(document) ? document : {})
  const contacts = model.resources.get('contacts')
  if (contacts === undefined) throw new Error('the model has no contacts')
  const config: JsonObject = { resource: 'contacts', method: 'list', response: { fields: nestedFields() } }
  const plan = compileMapping(mergeMappings([{ layer: 'shipped', config }]), contacts, 'list')
  return timePerRecord(ROUNDS, () =>
    mapRecords({ evaluator }, plan, CONTACTS as unknown as Json[], {
      calledAt: '2026-01-01T00:00:00.000Z',
      context: {},
    }),
  )
}

function nestedFields(): JsonObject {
  const fields: Record<string, Json> = {}
  for (const [path, text] of Object.entries(FIELDS)) {
    const [outer = '', inner] = path.split('.')
    fields[outer] = inner === undefined ? text : { ...(fields[outer] as JsonObject | undefined), [inner]: text }
  }
  return fields
}

function compiled(text: string): (contact: object) => Json | undefined {
  const expression = compileExpression(text)
  return (contact) => {
    const found = evaluateInline(expression, contact as JsonObject)
    if (found === undefined) throw new Error(`${text} is left to the sandbox`)
    return found.value
  }
}

function mapByHand({ id, properties, associations, ...contact }: (typeof CONTACTS)[number]): object {
  const { company, owner } = associations
  return {
    id: String(id),
    first_name: properties.firstname,
    last_name: properties.lastname,
    name: `${properties.firstname} ${properties.lastname}`.trim(),
    title: properties.jobtitle || undefined,
    department: properties.department,
    account: { id: String(company.id), name: company.name },
    owner: { id: String(owner.id), name: `${owner.firstName} ${owner.lastName}` },
    emails: contact.emails.map(({ value, type, primary }) => ({
      address: value,
      type: type === 'home' ? 'personal' : type,
      is_primary: primary,
    })),
    phones: contact.phones.map(({ number, kind }) => ({ number, type: kind.toLowerCase() })),
    addresses: contact.addresses.map(({ street, town, zip, country, kind }) => ({
      street_1: street,
      city: town,
      postal_code: zip,
      country,
      type: kind.toLowerCase(),
    })),
    urls: contact.websites.map((url) => ({ url })),
    lifecycle_stage: STAGES.get(properties.lifecyclestage ?? '') ?? 'other',
    tags: contact.labels.map((label) => ({ id: String(label.id), name: label.label })),
    last_activity_at: new Date(`${properties.notes_last_contacted.replace(' ', 'T')}Z`).toISOString(),
    created_at: new Date(properties.createdate).toISOString(),
    updated_at: properties.lastmodifieddate,
    deleted: contact.archived,
  }
}

const STAGES = new Map([
  ['lead', 'lead'],
  ['customer', 'customer'],
  ['marketingqualifiedlead', 'mql'],
])

/** The median over rounds, after as many to warm up. */
async function timePerRecord(rounds: number, map: () => unknown): Promise<number> {
  const times: number[] = []
  for (let round = -rounds; round < rounds; round++) {
    const from = performance.now()
    await map()
    if (round >= 0) times.push(((performance.now() - from) * 1_000) / RECORDS)
  }
  return times.toSorted((a, b) => a - b)[Math.floor(times.length / 2)] ?? Number.NaN
}
