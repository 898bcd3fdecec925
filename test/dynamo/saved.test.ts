// What a backward outside of the function reads: what a kept tape has saved, and which writes in between are errors.
import { describe, expect, it } from 'vitest'
import { compile, noGrad, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { agree, attempt, times } from './against.ts'

const leaf = (...values: number[]): Tensor => torch.tensor(values).requiresGrad_()

describe.each(['eager', 'inductor'])('on the backend %s', (backend) => {
  // The gradient of eigenvalues is computed with the eigenvectors alone, that of eigenvectors with both.
  it.each([
    ['values', 'values'],
    ['values', 'vectors'],
    ['values', 'both'],
    ['vectors', 'values'],
    ['vectors', 'vectors'],
  ] as const)('a write to the %s of eigh, and then a backward of %s, is an error where it is one eagerly', (written, differentiated) => {
    agree(backend, (c) => {
      const w = leaf(2, 1, 0, 1, 3, 1, 0, 1, 4)
      const f = c((x: Tensor) => torch.linalg.eigh(w.mul(x).view(3, 3)))
      return times(2, (i) => {
        w.grad = null
        const [values, vectors] = f(torch.full([9], i + 1))
        noGrad(() => (written === 'values' ? values : vectors).detach().add_(1))
        const loss = { values: values.sum(), vectors: vectors.abs().sum(), both: values.sum().add(vectors.sum()) }[differentiated]
        const error = attempt(() => loss.backward())
        return [error instanceof Error ? error.name : null, w.grad]
      })
    })
  })
})
