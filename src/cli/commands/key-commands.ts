import type { Command, Variable } from './command.ts'

/** The commands of encryption keys. @param variables those of the database and the object store */
export const keyCommands = (variables: readonly Variable[]): readonly Command[] => [
  {
    name: 'keys list',
    summary: 'list the encryption keys and what is under each',
    description:
      'Prints each key encryption key: whether it writes, how many data keys it wraps, and how many values these encrypt in the database and in the object store; then the rotations of data keys that go on.',
    variables,
    examples: ['patchbay keys list'],
    dataDirectory: 'shared',
    load: async () => (await import('./keys.ts')).runKeysList,
  },
  {
    name: 'keys add',
    operands: { '[KEY]': 'id of the new key; default: the first of k1, k2, … that is free' },
    summary: 'make a new encryption key',
    description:
      'Puts a new random key at the beginning of the key file; with PATCHBAY_ENCRYPTION_KEYS, prints the new setting as a line for a shell. It writes as soon as every process that runs has it.',
    variables,
    examples: ['patchbay keys add', 'patchbay keys add k2026'],
    dataDirectory: 'shared',
    load: async () => (await import('./keys.ts')).runKeysAdd,
  },
  {
    name: 'keys rotate',
    summary: 'wrap all data keys under the first encryption key, or make new data keys',
    description:
      'Without options, wraps every data key under the first encryption key, which every process that runs must have. With --data-keys, gives each owner (environment or team) a new data key and encrypts all values anew, in the database and in the object store. Both go on while processes read and write, and continue when they are repeated after an interruption; workers too continue --data-keys.',
    options: [
      { flags: '--data-keys', meaning: 'make new data keys and encrypt all values anew' },
      { flags: '--environment <ID>', meaning: 'make new data keys of that environment or team alone', fallback: 'all' },
    ],
    variables,
    examples: [
      'patchbay keys rotate',
      'patchbay keys rotate --data-keys',
      'patchbay keys rotate --data-keys --environment 01a1febe-108f-77e8-836b-f40b4a24d381',
    ],
    dataDirectory: 'shared',
    load: async () => (await import('./keys-rotate.ts')).runKeysRotate,
  },
  {
    name: 'keys retire',
    operands: { '<KEY>': 'id from `keys list`' },
    summary: 'end the use of an encryption key',
    description:
      'Refuses while a data key is wrapped under it or a process that runs needs it. Then takes it out of the key file; with PATCHBAY_ENCRYPTION_KEYS, says that it can be taken out of the setting.',
    variables,
    examples: ['patchbay keys retire k1'],
    dataDirectory: 'shared',
    load: async () => (await import('./keys.ts')).runKeysRetire,
  },
  {
    name: 'keys check',
    summary: 'check that every process has the encryption keys it needs',
    description:
      'Prints which keys each process that runs has and writes with. Exit code 1 when one lacks a key that is needed, when a key is missing here, or when values cannot be read because their data key is gone.',
    variables,
    examples: ['patchbay keys check'],
    dataDirectory: 'shared',
    load: async () => (await import('./keys.ts')).runKeysCheck,
  },
]
