// A program that does not import tensorfx/webgpu. Nothing in this file may do so.
import { expect, test } from 'vitest'
import { torch } from 'tensorfx'

test('torch.webgpu says which import adds it', () => {
  expect(() => torch.webgpu.stats()).toThrow(/torch\.webgpu does not exist here: write import 'tensorfx\/webgpu', which adds it/)
})
