import { expect, test } from 'vitest'
import { publicAddressWarnings } from '../../../../src/server/config/public-address.ts'

test.each([
  ['0.0.0.0', undefined, 1],
  ['::', undefined, 1],
  ['0.0.0.0', 'https://patchbay.example.com', 0],
  ['127.0.0.1', undefined, 0],
])('listening on %s with the public address %s has %i warnings', (host, publicUrl, count) => {
  expect(publicAddressWarnings({ host, publicUrl }, `http://${host}:8080`)).toHaveLength(count)
})
