import { type DescMethodUnary, getOption } from '@bufbuild/protobuf'
import { http } from '../../gen/google/api/annotations_pb.ts'
import type { Json, JsonObject } from '../../src/foundation/json/index.ts'
import { OPERATIONS } from './operations.ts'
import type { SeededTenant } from './seeded-tenant.ts'

/** Every operation that changes a resource by PATCH. */
export const PATCH_METHODS: readonly DescMethodUnary[] = OPERATIONS.filter(
  (method) => getOption(method, http)?.pattern.case === 'patch',
)

/** Fields of a PATCH that say which resource, which version of it, or how other fields are meant. */
const NO_CHANGES = [
  'id',
  'etag',
  'replace_override',
  'replace_config',
  'resources_inherited',
  'never_expires',
  'reauthorize_accounts',
  'confirm_identity_change',
  'UpdateUnifiedModel.name',
]

/** Values of a field: of a document, which PATCH merges, one for each of some keys. */
type Values = readonly Json[] | ((tenant: SeededTenant) => readonly Json[])

/** By field, or by operation and field where it is another field of that name: values that are not those of a new resource. */
const VALUES: Readonly<Record<string, Values>> = {
  name: ['patched'],
  domain: ['patched.example'],
  logo: ['https://app.example.com/logo.png'],
  is_white_label: [true],
  tos_link: ['https://app.example.com/terms'],
  allow_impersonation: [true],
  branding: [
    { display_name: 'Patched' },
    { accent_color: '#112233' },
    { logo_url: 'https://app.example.com/logo.png' },
  ],
  expires_at: ['2030-01-01T00:00:00.000Z'],
  category: ['patched'],
  is_beta: [true],
  sharing: ['allow'],
  'UpdateIntegration.config': [{ label: 'Patched' }, { headers: { 'x-patched': 'yes' } }],
  show_in_catalog: [true],
  'UpdateEnvironmentIntegration.is_enabled': [false],
  override: [{ label: 'Patched' }, { headers: { 'x-patched': 'yes' } }],
  tenant_id: ['patched'],
  context: [{ one: 1 }, { two: 2 }],
  label: ['patched'],
  'UpdateSyncJob.resources': [[{ resource: 'repos', method: 'list', persist: true }]],
  args_schema: [{ type: 'object' }],
  args_validation: ['true'],
  error_handling: ['batch'],
  daemon_group_key: ['patched'],
  webhook_id: ({ webhookId }) => [webhookId],
  cron_expression: ['0 0 2 1 *'],
  args: [{ since: 1 }],
  'UpdateSyncJobCronTrigger.resources': [[{ resource: 'repos', method: 'list', persist: true }]],
  target_url: ['https://app.example.com/patched'],
  event_types: [['record:*']],
  is_active: [false],
  description: ['patched'],
  'UpdateWebhook.filter': [{ type: 'record:created' }],
  headers: [{ 'x-one': '1' }, { 'x-two': '2' }],
  envelope: ['cloudevents'],
  compatibility: ['single_header_hex'],
  rate_limit: [{ requests: 5, window_seconds: 1 }],
  'UpdateUnifiedModel.config': [{ label: 'Patched' }, { description: 'Patched' }],
  'UpdateUnifiedMapping.config': [{ custom_fields: { mode: 'none' } }, { method: 'list' }],
  instructions: ['Patched.'],
  'UpdateToolServer.filter': [{ methods: ['read'] }],
  is_read_only: [true],
  mode: ['direct'],
  allow_search_writes: [true],
  limits: [{ requests_per_minute: 7 }],
  'UpdateToolServer.is_enabled': [false],
  integrations: [['example']],
  credentials: [{ api_key: 'patched' }],
  credential: [],
}

/** Changes of one field, or of one key of a document, for each field of a PATCH: any two change different things. */
export function patchesOf({ name, input }: DescMethodUnary, tenant: SeededTenant): readonly JsonObject[] {
  const fields = input.fields.map((field) => field.name)
  return fields
    .filter((field) => !NO_CHANGES.includes(field) && !NO_CHANGES.includes(`${name}.${field}`))
    .flatMap((field) => {
      const values = VALUES[`${name}.${field}`] ?? VALUES[field]
      if (values === undefined) throw new Error(`${name}.${field}: there is no value to change it to`)
      return (typeof values === 'function' ? values(tenant) : values).map((value) => ({ [field]: value }))
    })
}
