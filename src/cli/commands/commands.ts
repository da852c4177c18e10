import { REGIONS } from '../../foundation/queue/index.ts'
import { SETTINGS } from '../../server/config/index.ts'
import { auditCommands } from './audit-commands.ts'
import type { Command, CommandOption, Variable } from './command.ts'
import { keyCommands } from './key-commands.ts'

const ALL_SETTINGS = Object.keys(SETTINGS) as (keyof typeof SETTINGS)[]
const DATABASE: readonly Variable[] = [
  'databaseUrl',
  'dataDir',
  'encryptionKeys',
  'encryptionKeysFile',
  'databasePoolMax',
  'logLevel',
]
const FIRST_START: readonly Variable[] = [...DATABASE, 'bootstrapToken']
const METRICS: readonly Variable[] = ['metricsHost', 'metricsPort']
/** Settings that only workers read. */
const WORKER_ONLY: readonly Variable[] = [
  'region',
  'workerConcurrency',
  'deliveryConcurrency',
  'runRetentionDays',
  'eventRetentionDays',
  'accountHistoryRetentionDays',
  'deliveryRetentionDays',
  'deliveryAttemptRetentionDays',
  'inboundEventRetentionDays',
  'inboundContentRetentionDays',
  'callLogRetentionDays',
  'auditRetentionDays',
]
const OBJECT_STORE: readonly Variable[] = [
  'objectStoreDirectory',
  'objectStoreEndpoint',
  'objectStoreBucket',
  'objectStoreRegion',
  'objectStoreAccessKeyId',
  'objectStoreSecretAccessKey',
  'objectStorePathStyle',
  'objectStorePrefix',
  'objectStoreAllow',
]
const SERVER: readonly Variable[] = ALL_SETTINGS.filter((name) => !WORKER_ONLY.includes(name))
const WORKER: readonly Variable[] = [
  ...WORKER_ONLY,
  'egressAllow',
  'callLogSample',
  'egressConnectTo',
  'catchupWindowSeconds',
  'drainMs',
  ...OBJECT_STORE,
]
const LOCAL_SERVER: readonly Variable[] = ['PATCHBAY_TOKEN', 'publicUrl', 'host', 'port', 'tlsCert', 'dataDir']

const SERVER_OPTIONS: readonly CommandOption[] = [
  { flags: '--url <URL>', meaning: 'address of the server', fallback: 'the server configured by the variables below' },
  {
    flags: '--token <TOKEN>',
    meaning: 'API token; prefer the variable: other users can read a command line',
    fallback: 'PATCHBAY_TOKEN, else without --url the token in bootstrap.json',
  },
  { flags: '--environment <ID>', meaning: 'environment to act in', fallback: 'the environment of the token' },
]
const ENVIRONMENT: CommandOption = {
  flags: '--environment <ID>',
  meaning: 'environment to install in',
  fallback: 'the only environment of the first team',
}
const OVERRIDE: CommandOption = {
  flags: '--override <FILE>',
  meaning: 'JSON object, merged over the definition; replaces the stored override whole',
  fallback: 'the stored override is kept',
}

const MAPPING_OPTIONS: readonly CommandOption[] = [
  { flags: '--fixture <FILE>', meaning: 'cases by resource and name: a method, and what is sent and answered' },
  {
    flags: '--definition <FILE|NAME>',
    meaning: 'definition of the integration',
    fallback: 'the shipped definition of its name',
  },
  { flags: '--model <FILE>', meaning: 'the unified model', fallback: 'the shipped model of its name' },
  { flags: '--json', meaning: 'print JSON' },
]

/** The table of commands: what is parsed, what `--help` shows and what `guides/operate.md` lists. */
export const COMMANDS: readonly Command[] = [
  {
    name: 'start',
    summary: 'run API and worker in one process',
    description:
      'Runs everything on the embedded PostgreSQL of the data directory, or on DATABASE_URL, until SIGTERM or Ctrl-C. The first start creates a team, an environment and a token for each, and writes them to bootstrap.json in the data directory. Only one start can use a data directory at a time.',
    variables: ALL_SETTINGS,
    examples: ['patchbay start', 'PATCHBAY_PORT=9000 PATCHBAY_DATA_DIR=/var/lib/crm patchbay start'],
    dataDirectory: 'start',
    load: async () => (await import('./server.ts')).runStart,
  },
  {
    name: 'serve',
    summary: 'run the API alone',
    description:
      'Answers calls until SIGTERM. New accounts, ticks and runs wait for a worker. Any number of servers share one database.',
    variables: SERVER,
    examples: ['DATABASE_URL=postgres://patchbay@db/patchbay PATCHBAY_ENCRYPTION_KEYS=… patchbay serve'],
    dataDirectory: 'shared',
    load: async () => (await import('./server.ts')).runServe,
  },
  {
    name: 'worker',
    summary:
      'fire ticks, execute webhook runs, keep accounts and subscriptions fresh, deliver events, process inbound webhooks',
    description:
      'Activates accounts, refreshes their tokens, renews their webhook subscriptions, fires ticks, executes runs with a webhook as destination, delivers events, processes inbound webhooks, works on tasks and deletes old history, until SIGTERM. Any number of workers share one database.',
    options: [
      {
        flags: '--region <NAMES>',
        meaning: `regions whose accounts and runs it serves, comma-separated: ${REGIONS.join(', ')}`,
        fallback: 'PATCHBAY_REGION, else all',
      },
    ],
    variables: [...DATABASE, ...WORKER, ...METRICS],
    examples: ['patchbay worker', 'patchbay worker --region eu,apac'],
    dataDirectory: 'shared',
    load: async () => (await import('./server.ts')).runWorker,
  },
  {
    name: 'daemon',
    summary: 'execute runs of a daemon group into your own store',
    description:
      'Claims runs of a daemon group from a server and writes their records to a store, until SIGTERM. Needs the address of the server and a token, but not its database.',
    options: [
      { flags: '--group <KEY>', meaning: 'daemon group whose runs it executes; required' },
      { flags: '--store <STORE>', meaning: 'postgres://… or ndjson:DIR; required' },
      { flags: '--schema <NAME>', meaning: 'schema of its tables in PostgreSQL', fallback: 'public' },
      {
        flags: '--region <NAMES>',
        meaning: `regions of the accounts, comma-separated: ${REGIONS.join(', ')}`,
        fallback: 'all',
      },
      { flags: '--label <NAME>', meaning: 'name in the list of daemons', fallback: 'the host name' },
      { flags: '--capacity <N>', meaning: 'runs at once, 1 to 100', fallback: '4' },
      ...SERVER_OPTIONS,
    ],
    variables: ['PATCHBAY_TOKEN', 'logLevel', 'drainMs'],
    examples: [
      'PATCHBAY_TOKEN=… patchbay daemon --url https://patchbay.example.com --group warehouse --store postgres://user@host/database --schema crm',
      'patchbay daemon --group warehouse --store ndjson:/var/lib/records',
    ],
    dataDirectory: 'unused',
    load: async () => (await import('./daemon.ts')).runDaemon,
  },
  {
    name: 'migrate',
    summary: 'apply missing migrations, as every command does by itself',
    description: 'Applies missing migrations and ends. Changes nothing in an up-to-date database.',
    variables: DATABASE,
    examples: ['DATABASE_URL=postgres://patchbay@db/patchbay PATCHBAY_ENCRYPTION_KEYS=… patchbay migrate'],
    dataDirectory: 'shared',
    load: async () => (await import('./migrate.ts')).runMigrate,
  },
  {
    name: 'token create',
    summary: 'create a token for a team or an environment',
    description: 'Prints a new token, which is not shown again. Needs access to the database instead of a token.',
    options: [
      { flags: '--name <NAME>', meaning: 'name in lists; required' },
      { flags: '--team <ID>', meaning: 'team of the token', fallback: 'the first team' },
      { flags: '--environment <ID>', meaning: 'environment of the token, instead of a team' },
      {
        flags: '--preset <PRESET>',
        meaning: 'what it may do: full, read, proxy, daemon, connect, tools, deploy, operator',
      },
      {
        flags: '--scopes <SCOPES>',
        meaning: 'instead of a preset: scopes separated by commas, such as accounts:read,runs:write',
      },
      { flags: '--expires <TIME>', meaning: 'when it ends', fallback: 'never' },
    ],
    variables: FIRST_START,
    examples: [
      'patchbay token create --name deploy --preset deploy',
      'patchbay token create --name app --environment 01a1febe-108f-77e8-836b-f40b4a24d381 --preset proxy',
    ],
    dataDirectory: 'shared',
    load: async () => (await import('./token.ts')).runTokenCreate,
  },
  {
    name: 'token list',
    summary: 'list the tokens of the first team',
    description: 'Prints id, kind, last characters, state, preset or scopes, and name of each token, one per line.',
    variables: FIRST_START,
    examples: ['patchbay token list'],
    dataDirectory: 'shared',
    load: async () => (await import('./token.ts')).runTokenList,
  },
  {
    name: 'token revoke',
    operands: { '<ID>': 'id from `token list`' },
    summary: 'revoke a token of the first team',
    description: 'From then on every server rejects the token.',
    variables: FIRST_START,
    examples: ['patchbay token revoke 01a1febe-108f-77e8-836b-f40b4a24d381'],
    dataDirectory: 'shared',
    load: async () => (await import('./token.ts')).runTokenRevoke,
  },
  ...keyCommands([...DATABASE, ...OBJECT_STORE]),
  ...auditCommands({ server: LOCAL_SERVER, serverOptions: SERVER_OPTIONS }),
  {
    name: 'team list',
    summary: 'list all teams',
    description: 'Prints id, whether it is verified, name and domain of each team, newest first, one per line.',
    variables: FIRST_START,
    examples: ['patchbay team list'],
    dataDirectory: 'shared',
    load: async () => (await import('./team.ts')).runTeamList,
  },
  {
    name: 'team verify',
    operands: { '<ID>': 'id from `team list`' },
    summary: 'mark a team as verified',
    description:
      'Catalogs and answers then show its integrations as those of a verified team. Needs access to the database: no token can do it.',
    variables: FIRST_START,
    examples: ['patchbay team verify 01a1febe-108f-77e8-836b-f40b4a24d381'],
    dataDirectory: 'shared',
    load: async () => (await import('./team.ts')).runTeamVerify,
  },
  {
    name: 'team unverify',
    operands: { '<ID>': 'id from `team list`' },
    summary: 'take that mark away',
    description: 'The team is shown as not verified again. Needs access to the database: no token can do it.',
    variables: FIRST_START,
    examples: ['patchbay team unverify 01a1febe-108f-77e8-836b-f40b4a24d381'],
    dataDirectory: 'shared',
    load: async () => (await import('./team.ts')).runTeamUnverify,
  },
  {
    name: 'catalog',
    summary: 'list the shipped definitions and how their accounts connect',
    description: 'Prints name, label and resources of each definition that `install NAME` accepts, one per line.',
    examples: ['patchbay catalog'],
    dataDirectory: 'unused',
    load: async () => (await import('./catalog.ts')).runCatalog,
  },
  {
    name: 'check',
    operands: { '<FILES...>': 'definitions: files, or names of shipped ones' },
    summary: 'report every problem of definitions',
    description: 'Prints one line per finding and exits with 1 when there is one. For editors and builds.',
    options: [{ flags: OVERRIDE.flags, meaning: 'check this override merged over the definition instead' }],
    examples: ['patchbay check crm.json', 'patchbay check github --override ours.json'],
    dataDirectory: 'unused',
    load: async () => (await import('./check.ts')).runCheck,
  },
  {
    name: 'unified check',
    operands: { '<FILES...>': 'mappings of unified resources: files, or shipped ones such as crm/hubspot' },
    summary: 'report problems of unified mappings',
    description:
      'Prints one line per finding: errors, warnings, hints; of each resource first the errors of its methods by themselves, and when there are none, the findings about what they come to. With a fixture it also runs its cases, and reports expressions that never have a value and values that no enum covers. Exits with 1 when there is an error.',
    options: MAPPING_OPTIONS,
    examples: ['patchbay unified check crm/hubspot', 'patchbay unified check ours.json --definition crm.json'],
    dataDirectory: 'unused',
    load: async () => (await import('./unified-check.ts')).runUnifiedCheck,
  },
  {
    name: 'unified try',
    operands: { '<FILE>': 'a mapping of unified resources: a file, or a shipped one such as crm/hubspot' },
    summary: 'run recorded answers of a third party through a unified mapping',
    description:
      'Shows the requests and answers of each case of a fixture file, the unified result, how each field came about, and warnings. Sends nothing. A mapping with errors is not run: its findings are printed. Exits with 1 then, and when a case does not run as it is recorded.',
    options: [
      { flags: '--case <RESOURCE/NAME>', meaning: 'only this case, or all of this resource', fallback: 'all cases' },
      ...MAPPING_OPTIONS,
    ],
    examples: ['patchbay unified try ours.json --fixture answers.json --case contacts/list'],
    dataDirectory: 'unused',
    load: async () => (await import('./unified-try.ts')).runUnifiedTry,
  },
  {
    name: 'unified push',
    operands: { '[FILES...]': 'mappings of unified resources' },
    summary: 'store a unified model and mappings on a server',
    description:
      'Creates or replaces each method of the files on the server, and prints what was created, changed or unchanged, with what the server warns of; what the server has beside them is kept. A method that is rejected is printed with its errors, and the others are stored; it exits with 1 then. A model and the scope base need a team token. With --dry-run the server does the same and keeps nothing: findings and exit code are those of the push.',
    options: [
      { flags: '--model <FILE>', meaning: 'a unified model to store first' },
      {
        flags: '--scope <SCOPE>',
        meaning: 'where the mappings hold: base (the team), environment, account',
        fallback: 'environment, with --account account',
      },
      { flags: '--account <ID>', meaning: 'account for which they hold' },
      { flags: '--dry-run', meaning: 'check everything as the push does, and store nothing' },
      ...SERVER_OPTIONS,
    ],
    variables: LOCAL_SERVER,
    examples: [
      'PATCHBAY_TOKEN=… patchbay unified push ours.json --url https://patchbay.example.com',
      'PATCHBAY_TOKEN=… patchbay unified push ours.json --model model.json --scope base --dry-run',
    ],
    dataDirectory: 'unused',
    load: async () => (await import('./unified-push.ts')).runUnifiedPush,
  },
  {
    name: 'install',
    operands: { '<FILE|NAME>': 'a definition: a file, or the name of a shipped one' },
    summary: 'install a definition, or replace an installed one',
    description:
      'Prints the ids of the integration and of its installation. Run again after the file has changed, it replaces the definition and keeps the accounts, and warns of sync jobs that read what it no longer has.',
    options: [
      ENVIRONMENT,
      OVERRIDE,
      { flags: '--base-url <URL>', meaning: 'base URL of the API, set in the override, of which all else is kept' },
      {
        flags: '--reauthorize-accounts',
        meaning: 'when the override sends requests to other hosts, accounts have to be connected again',
      },
      { flags: '--show-in-catalog', meaning: 'show it in the catalogue, from which customers choose' },
    ],
    variables: [...FIRST_START, 'egressAllow', 'egressConnectTo'],
    examples: ['patchbay install github', 'patchbay install crm.json --override ours.json'],
    dataDirectory: 'shared',
    load: async () => (await import('./install.ts')).runInstall,
  },
  {
    name: 'run',
    operands: { '<ID>': 'id of a trigger; with --follow of a trigger or a run' },
    summary: 'run a trigger now, or follow a run',
    description:
      'Starts a run of the trigger. With --follow it shows the run until it ends and exits with 0 if it completed, 1 if it failed, 3 if it partially completed, was stopped or skipped. Ctrl-C does not stop the run.',
    options: [
      { flags: '--follow', meaning: 'show the progress until the run ends' },
      { flags: '--full', meaning: 'read everything, not only what has changed since the last run of the trigger' },
      ...SERVER_OPTIONS,
    ],
    variables: LOCAL_SERVER,
    examples: ['patchbay run 01a1febe-108f-77e8-836b-f40b4a24d381 --follow'],
    dataDirectory: 'unused',
    load: async () => (await import('./run.ts')).runTriggerNow,
  },
  {
    name: 'calls',
    operands: { '[ID]': 'id of an entry, such as the `log_id` of an error: shows that one, with headers and bodies' },
    summary: 'show requests to third parties',
    description:
      'Shows the newest requests that were sent to third parties, one a line, the newest last: when, what, what became of it, how long it took, what it was sent for, and the id of its entry in the request log. With an id it shows that one whole, with --curl as a command that sends it again. With --follow it shows those that are sent from now on, until Ctrl-C.',
    options: [
      { flags: '--account <ID>', meaning: 'only those through this account', fallback: 'all' },
      { flags: '--run <ID>', meaning: 'only those of this run', fallback: 'all' },
      { flags: '--class <CLASS>', meaning: 'only those that came to this, such as `error`', fallback: 'all' },
      {
        flags: '--since <TIME>',
        meaning: 'only those that ended at or after this time',
        fallback: 'from the beginning',
      },
      { flags: '--failed', meaning: 'only those that were no success' },
      { flags: '--cause <CAUSE>', meaning: 'only those for this, such as `token`', fallback: 'all' },
      { flags: '--path <TEXT>', meaning: 'only those with this in their path', fallback: 'all' },
      { flags: '--limit <N>', meaning: 'how many at most', fallback: '50' },
      { flags: '--follow', meaning: 'show those that are sent from now on' },
      { flags: '--curl', meaning: 'of an id: a command of curl that sends it again; masked credentials are *** in it' },
      ...SERVER_OPTIONS,
    ],
    variables: LOCAL_SERVER,
    examples: [
      'patchbay calls --run 01a1febe-108f-77e8-836b-f40b4a24d381',
      'patchbay calls --class error --follow',
      'patchbay calls 01a1febe-108f-77e8-836b-f40b4a24d381 --curl',
    ],
    dataDirectory: 'unused',
    load: async () => (await import('./calls.ts')).runCalls,
  },
]
