// docs/errors.md is what scripts/errorReference.mjs writes from the error classes, and the classes say everything that the page needs.
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { TensorfxError, torch } from 'tensorfx'
import * as autograd from 'tensorfx/autograd'
import * as compile from 'tensorfx/compile'
import * as data from 'tensorfx/data'
import * as debug from 'tensorfx/debug'
import * as distributed from 'tensorfx/distributed'
import * as fx from 'tensorfx/fx'
import * as passes from 'tensorfx/fx/passes'
import * as kernels from 'tensorfx/kernels'
import * as library from 'tensorfx/library'
import * as nn from 'tensorfx/nn'
import * as tensorfx from 'tensorfx'
import * as webgpu from 'tensorfx/webgpu'
import { errorClasses, errorPage } from '../../scripts/errorReference.mjs'

const entries: Readonly<Record<string, object>> = {
  tensorfx,
  'tensorfx/autograd': autograd,
  'tensorfx/compile': compile,
  'tensorfx/data': data,
  'tensorfx/debug': debug,
  'tensorfx/distributed': distributed,
  'tensorfx/fx': fx,
  'tensorfx/fx/passes': passes,
  'tensorfx/kernels': kernels,
  'tensorfx/library': library,
  'tensorfx/nn': nn,
  'tensorfx/webgpu': webgpu,
}
const classes = errorClasses()

it('docs/errors.md is up to date (npm run docs:errors writes it)', () => {
  expect(readFileSync(fileURLToPath(new URL('../../docs/errors.md', import.meta.url)), 'utf8')).toBe(errorPage())
})

describe('the error classes', () => {
  it('are all found: those that the entries export, and no others', () => {
    const exported = Object.values(entries).flatMap((entry) =>
      Object.values(entry).flatMap((value: unknown) => (typeof value === 'function' && value.prototype instanceof TensorfxError ? [value.name] : [])),
    )
    expect(classes.map((c) => c.name).sort()).toEqual([...new Set(exported)].sort())
  })

  it.each(classes.map((c) => [c.name, c] as const))('%s has a code, a meaning, a fix, and an entry that exports it', (name, c) => {
    expect(c.code).toMatch(/^TFX_[A-Z_]+$/)
    expect(c.meaning).toMatch(/\.$/)
    expect(c.fix).toMatch(/^[^A-Z].*\.$/)
    expect(Object.keys(entries[c.from ?? ''] ?? {})).toContain(name)
  })

  it('have codes of their own', () => {
    expect(new Set(classes.map((c) => c.code)).size).toBe(classes.length)
  })
})

it('an error has the code and the name of its class', () => {
  const fails = (): unknown => torch.ones([2, 3]).matmul(torch.ones([2, 3]))
  expect(fails).toThrow(expect.objectContaining({ name: 'ShapeError', code: classes.find((c) => c.name === 'ShapeError')?.code }))
})
