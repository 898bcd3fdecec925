// Where the optional package onnxruntime-web is not installed, a comparison with it is an error, and not one in which nothing differs.
import { expect, it, vi } from 'vitest'
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { compareBackends, onnxSession } from 'tensorfx/debug'
import { symbolicTrace } from 'tensorfx/fx'

vi.mock('onnxruntime-web', () => {
  throw new Error("Cannot find package 'onnxruntime-web'")
})

it.each(['onnxruntime', 'onnxruntime:webgpu'])('%s asks for the package', async (backend) => {
  const gm = symbolicTrace((x: Tensor) => torch.relu(x))
  await expect(compareBackends(gm, [torch.ones([2])], { backends: ['eager', backend] })).rejects.toThrow(
    'onnxruntime-web could not be loaded. Install it: npm install onnxruntime-web',
  )
  await expect(onnxSession(gm, [torch.ones([2])])).rejects.toThrow('Install it')
})
