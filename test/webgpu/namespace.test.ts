// torch.webgpu, which the import of tensorfx/webgpu adds.
import { expect, test } from 'vitest'
import { torch } from 'tensorfx'
import * as webgpu from 'tensorfx/webgpu'

test('torch.webgpu has the functions of tensorfx/webgpu', () => {
  const { description, init, loseDevice, profile, stats, synchronize } = webgpu
  expect(torch.webgpu).toEqual({ description, init, loseDevice, profile, stats, synchronize })
  expect(Object.keys(torch)).not.toContain('webgpu')
})
