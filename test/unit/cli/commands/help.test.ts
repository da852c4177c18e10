import { describe, expect, it, vi } from 'vitest'
import { COMMANDS } from '../../../../src/cli/commands/commands.ts'
import { SETTINGS } from '../../../../src/server/config/config.ts'
import { runInProcess } from '../../../support/command.ts'

/** Runs the command line; nothing it loads may start anything. */
async function run(args: readonly string[], environment: NodeJS.ProcessEnv = {}) {
  const { exitCode, stdout: out, stderr: err } = await runInProcess(args, environment)
  return { exitCode, out, err }
}

describe.each(COMMANDS)('`patchbay $name`', (command) => {
  const words = command.name.split(' ')

  it('prints its help with --help, -h and help, and does nothing else', async () => {
    const load = vi.spyOn(command, 'load')
    const asked = [
      [...words, '--help'],
      [...words, '-h'],
      ['help', ...words],
    ]
    const answers = await Promise.all([run(asked[0] ?? [])])
    for (const args of asked.slice(1)) answers.push(await run(args))
    for (const { exitCode, out, err } of answers) {
      expect({ exitCode, err }).toEqual({ exitCode: 0, err: '' })
      expect(out.replace(/\s+/g, ' ')).toContain(command.description)
      for (const { flags } of command.options ?? []) expect(out).toContain(flags)
      for (const variable of command.variables ?? [])
        expect(out).toContain(variable === 'PATCHBAY_TOKEN' ? variable : SETTINGS[variable].variable)
      for (const example of command.examples) expect(out).toContain(`$ ${example}`)
      const prose = out.split('\nExamples:')[0] ?? ''
      expect(prose.split('\n').filter((line) => line.length > 100)).toEqual([])
    }
    expect(load).not.toHaveBeenCalled()
    load.mockRestore()
  })

  it('rejects an unknown option and an extra operand', async () => {
    const operands = Object.keys(command.operands ?? {}).map(() => 'x')
    const takesMany = Object.keys(command.operands ?? {}).some((operand) => operand.includes('...'))
    for (const wrong of [['--no-such-option'], ['--hepl'], ...(takesMany ? [] : [['word-too-many']])]) {
      const { exitCode, out, err } = await run([...words, ...operands, ...wrong])
      expect({ exitCode, out, lines: err.trimEnd().split('\n').length }).toEqual({ exitCode: 2, out: '', lines: 1 })
      expect(err).toContain(`See patchbay ${command.name} --help`)
    }
  })
})

describe('the command line', () => {
  it('prints its version', async () => {
    expect(await run(['--version'])).toMatchObject({ exitCode: 0, out: expect.stringMatching(/^\d+\.\d+\.\d+\n$/) })
  })

  it.each([
    [['strat'], "unknown command 'strat'. Did you mean start?"],
    [['token', 'lits'], "unknown command 'lits'. Did you mean list?"],
    [['run', '--folow', 'x'], "unknown option '--folow'. Did you mean --follow?"],
  ])('guesses what %j is meant to be', async (args, says) => {
    const { exitCode, err } = await run(args)
    expect([exitCode, err]).toEqual([2, expect.stringContaining(says)])
  })

  it('lists its commands when none is given', async () => {
    const { exitCode, err } = await run([])
    expect(exitCode).toBe(2)
    for (const { name } of COMMANDS) expect(err).toContain(name.split(' ')[0])
  })

  it('rejects an unknown PATCHBAY_ variable, except those of Kubernetes service links', async () => {
    const links = { PATCHBAY_SERVICE_HOST: '10.0.0.1', PATCHBAY_PORT_8080_TCP_ADDR: '10.0.0.1' }
    const { err } = await run(['run', 'x'], links)
    expect(err).toContain('run takes the id of a trigger')
    const misspelt = await run(['run', 'x'], { ...links, PATCHBAY_TOKN: 't' })
    expect(misspelt).toMatchObject({ exitCode: 1, err: expect.stringContaining('did you mean PATCHBAY_TOKEN?') })
  })
})

it('`patchbay catalog` names the formats in which accounts of each definition connect', async () => {
  const { exitCode, out } = await run(['catalog'])
  expect(exitCode).toBe(0)
  expect(out).toMatch(/^hubspot +HubSpot \(oauth2, api_key\): account, contacts/m)
  expect(out).toMatch(/^amazon-s3 +Amazon S3 \(api_key\): /m)
})
