import { REGIONS, SETTINGS } from '../config.ts'
import type { Command, CommandOption, Variable } from './command.ts'

const ALL = Object.keys(SETTINGS) as (keyof typeof SETTINGS)[]
const DATABASE: readonly Variable[] = ['databaseUrl', 'dataDir', 'encryptionKeys', 'databasePoolMax', 'logLevel']
const FIRST_START: readonly Variable[] = [...DATABASE, 'bootstrapToken']
const METRICS: readonly Variable[] = ['metricsHost', 'metricsPort']
/** Settings of workers, which a server alone does not read. */
const WORKER_ONLY: readonly Variable[] = ['region', 'workerConcurrency', 'runRetentionDays']
const SERVER: readonly Variable[] = ALL.filter((name) => !WORKER_ONLY.includes(name))
const WORKER: readonly Variable[] = [
  ...(['region', 'workerConcurrency', 'egressAllow', 'catchupWindowSeconds', 'runRetentionDays', 'drainMs'] as const),
]
const LOCAL_SERVER: readonly Variable[] = ['PATCHBAY_TOKEN', 'publicUrl', 'host', 'port', 'tlsCert', 'dataDir']

const SERVER_OPTIONS: readonly CommandOption[] = [
  { flags: '--url <URL>', meaning: 'address of the server', fallback: 'the one that the variables below configure' },
  {
    flags: '--token <TOKEN>',
    meaning: 'API token; a variable is better, others can read a command line',
    fallback: 'PATCHBAY_TOKEN, else without --url the token in bootstrap.json',
  },
  { flags: '--environment <ID>', meaning: 'environment to act in', fallback: 'the one of the token' },
]
const ENVIRONMENT: CommandOption = {
  flags: '--environment <ID>',
  meaning: 'environment to install in',
  fallback: 'the only one of the first team',
}
const OVERRIDE: CommandOption = { flags: '--override <FILE>', meaning: 'JSON object, merged over the definition' }

/** The table of commands: what is parsed, what `--help` tells and what the README lists. */
export const COMMANDS: readonly Command[] = [
  {
    name: 'start',
    summary: 'run API and worker in one process',
    description:
      'Runs everything on the embedded PostgreSQL of the data directory, or on DATABASE_URL, until SIGTERM or Ctrl-C. The first start makes a team, an environment and a token of each, and keeps them in bootstrap.json in the data directory. A data directory has one start at a time.',
    variables: ALL,
    examples: ['patchbay start', 'PATCHBAY_PORT=9000 PATCHBAY_DATA_DIR=/var/lib/crm patchbay start'],
    dataDirectory: 'start',
    load: async () => (await import('./server.ts')).runStart,
  },
  {
    name: 'serve',
    summary: 'run the API alone',
    description:
      'Answers calls until SIGTERM; ticks and runs wait for a worker. Any number of servers share one database.',
    variables: SERVER,
    examples: ['DATABASE_URL=postgres://patchbay@db/patchbay PATCHBAY_ENCRYPTION_KEYS=… patchbay serve'],
    dataDirectory: 'shared',
    load: async () => (await import('./server.ts')).runServe,
  },
  {
    name: 'worker',
    summary: 'fire ticks and execute webhook runs; any number, anywhere',
    description:
      'Fires ticks, executes runs that go to webhooks, keeps tokens fresh and forgets old runs, until SIGTERM.',
    options: [
      {
        flags: '--region <NAMES>',
        meaning: `regions whose runs it takes, comma-separated: ${REGIONS.join(', ')}`,
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
    summary: 'execute runs of a group into a store of your own',
    description:
      'Claims runs of a daemon group from a server and writes their records into a store, until SIGTERM. It needs the address of the server and a token, no database of the product.',
    options: [
      { flags: '--group <KEY>', meaning: 'daemon group whose runs it takes; required' },
      { flags: '--store <STORE>', meaning: 'postgres://… or ndjson:DIR; required' },
      { flags: '--schema <NAME>', meaning: 'schema of its tables in PostgreSQL', fallback: 'public' },
      {
        flags: '--region <NAMES>',
        meaning: `regions of the accounts, comma-separated: ${REGIONS.join(', ')}`,
        fallback: 'all',
      },
      { flags: '--label <NAME>', meaning: 'what it is called in the list of daemons', fallback: 'the host name' },
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
    summary: 'bring the database schema up to date, as every command does by itself',
    description: 'Applies the migrations that are missing and ends. On an up-to-date database it changes nothing.',
    variables: DATABASE,
    examples: ['DATABASE_URL=postgres://patchbay@db/patchbay PATCHBAY_ENCRYPTION_KEYS=… patchbay migrate'],
    dataDirectory: 'shared',
    load: async () => (await import('./migrate.ts')).runMigrate,
  },
  {
    name: 'token create',
    summary: 'make a token of a team or an environment',
    description: 'Prints a new token, which is shown only now. Needs no token itself, but access to the database.',
    options: [
      { flags: '--name <NAME>', meaning: 'what it is called in lists; required' },
      { flags: '--team <ID>', meaning: 'team it belongs to', fallback: 'the first team' },
      { flags: '--environment <ID>', meaning: 'environment it belongs to, instead of a team' },
    ],
    variables: FIRST_START,
    examples: [
      'patchbay token create --name deploy',
      'patchbay token create --name app --environment 01a1febe-108f-77e8-836b-f40b4a24d381',
    ],
    dataDirectory: 'shared',
    load: async () => (await import('./token.ts')).runTokenCreate,
  },
  {
    name: 'token list',
    summary: 'list the tokens of the first team',
    description: 'Prints id, kind, last characters, state and name of every token, one a line.',
    variables: FIRST_START,
    examples: ['patchbay token list'],
    dataDirectory: 'shared',
    load: async () => (await import('./token.ts')).runTokenList,
  },
  {
    name: 'token revoke',
    operands: { '<ID>': 'of the token, as `token list` shows it' },
    summary: 'revoke a token of the first team',
    description: 'The token is refused from then on, by every server.',
    variables: FIRST_START,
    examples: ['patchbay token revoke 01a1febe-108f-77e8-836b-f40b4a24d381'],
    dataDirectory: 'shared',
    load: async () => (await import('./token.ts')).runTokenRevoke,
  },
  {
    name: 'catalog',
    summary: 'list the shipped definitions',
    description: 'Prints name, label and resources of every definition that `install NAME` knows, one a line.',
    examples: ['patchbay catalog'],
    dataDirectory: 'unused',
    load: async () => (await import('./catalog.ts')).runCatalog,
  },
  {
    name: 'check',
    operands: { '<FILES...>': 'definitions: files, or names of shipped ones' },
    summary: 'tell everything that is wrong with definitions',
    description: 'Prints one line per finding; exits with 1 when there is any. For editors and builds.',
    options: [{ ...OVERRIDE, meaning: 'check this override over the definition instead' }],
    examples: ['patchbay check crm.json', 'patchbay check github --override ours.json'],
    dataDirectory: 'unused',
    load: async () => (await import('./check.ts')).runCheck,
  },
  {
    name: 'install',
    operands: { '<FILE|NAME>': 'a definition: a file, or the name of a shipped one' },
    summary: 'install a definition; run again, replaces it',
    description:
      'Prints the ids of the integration and of its installation. Run again after the file has changed it replaces the definition; accounts stay.',
    options: [
      ENVIRONMENT,
      OVERRIDE,
      { flags: '--base-url <URL>', meaning: 'address of the API, over that of definition and override' },
    ],
    variables: [...FIRST_START, 'egressAllow'],
    examples: ['patchbay install github', 'patchbay install crm.json --override ours.json'],
    dataDirectory: 'shared',
    load: async () => (await import('./install.ts')).runInstall,
  },
  {
    name: 'run',
    operands: { '<ID>': 'of a trigger; with --follow of a trigger or a run' },
    summary: 'run a trigger now, or follow a run',
    description:
      'Starts a run of the trigger. With --follow it shows the run until it ends: exit code 0 completed, 1 failed, 3 partially completed, stopped or skipped. Ctrl-C leaves the run running.',
    options: [{ flags: '--follow', meaning: 'show the progress until the run ends' }, ...SERVER_OPTIONS],
    variables: LOCAL_SERVER,
    examples: ['patchbay run 01a1febe-108f-77e8-836b-f40b4a24d381 --follow'],
    dataDirectory: 'unused',
    load: async () => (await import('./run.ts')).runTriggerNow,
  },
]
