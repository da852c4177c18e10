import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Code } from '@connectrpc/connect'
import { afterAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { runCommand } from '../../../../src/cli/commands/run-command.ts'
import { someCases } from '../../../support/case-count.ts'
import { TLS_KEYS } from '../../server/api/support/tls-keys.ts'
import { DaemonProcess } from './support/daemon-process.ts'
import { serviceError, startScriptedService } from './support/scripted-service.ts'

const directory = mkdtempSync(join(tmpdir(), 'patchbay-daemon-'))
const TOKEN = 'secret-token-of-the-daemon'

afterAll(() => rmSync(directory, { recursive: true }))

const argumentsFor = (url: string) => [
  '--url',
  url,
  '--group',
  'g',
  '--store',
  `ndjson:${directory}`,
  '--label',
  'host-1',
]

describe('patchbay daemon', () => {
  const processes: Readonly<Record<string, () => Promise<void>>> = {
    async 'connects by TLS to a service with a trusted certificate, and never prints its token'() {
      const ca = join(directory, 'ca.pem')
      writeFileSync(ca, TLS_KEYS.cert)
      await using service = await startScriptedService({}, TLS_KEYS)
      const environment = { PATCHBAY_TOKEN: TOKEN, NODE_EXTRA_CA_CERTS: ca, PATCHBAY_LOG_LEVEL: 'debug' }
      await using daemon = new DaemonProcess(argumentsFor(service.url), environment)
      await service.called('complete')
      expect(await daemon.end('SIGTERM')).toBe(0)
      expect(service.authorizations).toEqual(new Set([`Bearer ${TOKEN}`]))
      expect([...service.versions]).toEqual([expect.stringMatching(/^patchbay \d+\.\d+\.\d+$/)])
      expect(daemon.output).not.toContain(TOKEN)
    },

    async 'does not connect to a service with an untrusted certificate'() {
      await using service = await startScriptedService({}, TLS_KEYS)
      await using daemon = new DaemonProcess(argumentsFor(service.url), { PATCHBAY_TOKEN: TOKEN })
      await daemon.waitForOutput('the service is unavailable')
      expect(service.calls).toEqual([])
    },

    async 'exits with 1 and one line when another server answers at the address, also under npm'() {
      const server = createServer((_, response) => response.writeHead(404).end())
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
      onTestFinished(() => void server.close())
      const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
      const environment = { PATCHBAY_TOKEN: TOKEN, npm_lifecycle_event: 'patchbay' }
      await using daemon = new DaemonProcess(argumentsFor(url), environment)
      expect(await daemon.ended).toBe(1)
      expect(daemon.output).toContain('patchbay: the server answered Unimplemented')
      expect(daemon.output).not.toContain('    at ')
    },

    async 'exits with 1 and only the error when its token is rejected'() {
      await using service = await startScriptedService({ token: 'another' })
      const environment = { PATCHBAY_TOKEN: TOKEN, PATCHBAY_LOG_LEVEL: 'warn' }
      await using daemon = new DaemonProcess(argumentsFor(service.url), environment)
      expect(await daemon.ended).toBe(1)
      expect(service.calls).toContain('register')
      expect(daemon.output.trimEnd().split('\n')).toEqual([expect.stringMatching(/^patchbay: /)])
    },

    async 'says that it takes runs once, when the service has accepted it'() {
      const claimRuns = () => {
        if (service.calls.filter((call) => call === 'claim').length === 1)
          throw serviceError(Code.NotFound, 'RESOURCE_NOT_FOUND')
        return {}
      }
      await using service = await startScriptedService({ claimRuns })
      await using daemon = new DaemonProcess([...argumentsFor(service.url), '--token', TOKEN])
      await daemon.waitForOutput('takes runs')
      expect(service.calls).toContain('register')
      await service.called('claim', 2)
      expect(await daemon.end('SIGTERM')).toBe(0)
      expect(daemon.output.match(/^Patchbay daemon host-1 takes runs of the group g$/gm)).toHaveLength(1)
    },
  }
  it.each(someCases(Object.entries(processes), 2))('%s', async (_, expectSo) => {
    await expectSo()
  })

  it('finishes its page on SIGTERM, releases the run and exits with 0', async () => {
    const [reached, mayGoOn] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    await using service = await startScriptedService({
      async beforePage(page) {
        if (page !== 4) return
        reached.resolve()
        await mayGoOn.promise
      },
    })
    await using daemon = new DaemonProcess([...argumentsFor(service.url), '--token', TOKEN])
    await reached.promise
    await service.called('report', 4)
    const ended = daemon.end('SIGTERM')
    await service.called('heartbeat draining')
    mayGoOn.resolve()
    expect(await ended).toBe(0)
    expect(service.calls).toContain('release')
    const [file = ''] = globSync(`contacts/*/${service.runId}.ndjson`, { cwd: directory })
    const ids = readFileSync(join(directory, file), 'utf8')
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line)._id)
    // One report before the first page, then one per page of two records.
    const reports = service.calls.filter((call) => call === 'report').length
    expect(ids).toEqual(Array.from({ length: 2 * (reports - 1) }, (_, index) => String(index + 1)))
  })

  it.each([
    { what: 'no token', args: ['--url', 'http://x', '--group', 'g', '--store', 'ndjson:x'], says: 'PATCHBAY_TOKEN' },
    { what: 'a URL of no service', args: [...argumentsFor('ftp://x'), '--token', 't'], says: 'http or https' },
    {
      what: 'an unknown region',
      args: [...argumentsFor('http://x'), '--token', 't', '--region', 'mars'],
      says: 'wnam',
    },
    {
      what: 'a capacity of 0',
      args: [...argumentsFor('http://x'), '--token', 't', '--capacity', '0'],
      says: '1 to 100',
    },
    {
      what: 'an unknown store',
      args: ['--url', 'http://x', '--group', 'g', '--store', 'mysql://x', '--token', 't'],
      says: 'ndjson:DIR',
    },
    {
      what: 'an environment without an id',
      args: [...argumentsFor('http://x'), '--token', 't', '--environment', 'e'],
      says: 'takes an id',
    },
    { what: 'an unknown option', args: ['--colour', 'red'], says: '--colour' },
  ])('explains its usage when there is $what', async ({ args, says }) => {
    const written = vi.spyOn(process.stderr, 'write').mockReturnValue(true)
    expect(await runCommand(['daemon', ...args], {})).toBe(2)
    const text = written.mock.calls.join('')
    written.mockRestore()
    expect(text).toContain(says)
    expect(text.trimEnd().split('\n')).toHaveLength(1)
  })
})
