// What a compiled function disposes of is freed once nothing that it has recorded reads it: its results are those of the function itself.
import { describe, expect, it, test } from 'vitest'
import { compile, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'

type Program = (x: Tensor) => readonly (Tensor | number)[]

/** Programs that dispose of their argument. */
const ofInput: Readonly<Record<string, Program>> = {
  'in the graph that reads it': (x) => {
    const y = x.mul(2)
    x.dispose()
    return [y]
  },
  'through a view': (x) => {
    const view = x.view(-1)
    const y = view.mul(2)
    view.dispose()
    return [y]
  },
  'after a graph break': (x) => {
    const y = x.mul(2)
    const sum = Number(x.add(1).sum().item())
    x.dispose()
    return [y, sum]
  },
  'after two, with a value of each graph': (x) => {
    const y = x.mul(2)
    const sum = Number(x.sum().item())
    const z = y.add(sum)
    const mean = Number(x.mean().item())
    x.dispose()
    return [z, mean]
  },
  'before a graph break': (x) => {
    const y = x.mul(2)
    x.dispose()
    return [y, Number(y.sum().item())]
  },
  'and writes to it before': (x) => {
    x.add_(1)
    const y = x.mul(2)
    x.dispose()
    return [y]
  },
}

/** Programs that dispose of what they compute. */
const ofOwn: Readonly<Record<string, Program>> = {
  'that is read by the same graph': (x) => {
    const t = x.mul(2)
    const u = t.add(1)
    t.dispose()
    return [u]
  },
  'that is read by two graphs': (x) => {
    const t = x.mul(2)
    const u = t.add(1)
    const v = t.mul(5)
    const sum = Number(u.sum().item())
    t.dispose()
    return [v, sum]
  },
}

const read = (values: readonly (Tensor | number)[]): readonly unknown[] =>
  values.map((value) => (typeof value === 'number' ? value : value.toArray()))
const input = (i: number): Tensor => torch.arange(3).float().add(i)

/** Over as many calls as it takes until a path has learned what is read of it. */
function checkCalls(program: Program, check: (x: Tensor) => void): void {
  const fn = compile(program)
  for (let i = 0; i < 20; i++) {
    const x = input(i)
    expect(read(fn(x)), `call ${i}`).toEqual(read(program(input(i))))
    check(x)
  }
}

describe('the argument', () => {
  it.each(Object.entries(ofInput))('%s', (_name, program) => {
    checkCalls(program, (x) => expect(() => x.toArray()).toThrow('this tensor has been disposed'))
  })
})

describe('a tensor of its own', () => {
  it.each(Object.entries(ofOwn))('%s', (_name, program) => {
    checkCalls(program, (x) => expect(x.toArray()).toHaveLength(3))
  })

  test('breaks no graph', () => {
    const fn = compile(
      (x: Tensor) => {
        const t = x.mul(2)
        const u = t.add(1)
        t.dispose()
        return u
      },
      { fullgraph: true },
    )
    for (let i = 0; i < 3; i++) expect(fn(torch.full([2], i)).toArray()).toEqual([2 * i + 1, 2 * i + 1])
  })
})

test('what was kept outside has its value, though the argument was disposed of after the call', () => {
  let kept: Tensor | null = null
  const fn = compile((x: Tensor) => {
    kept = x.mul(2)
    return x.add(1)
  })
  for (let i = 0; i < 20; i++) {
    const x = torch.full([2], i)
    fn(x)
    x.dispose()
    if (i % 4 === 3) expect((kept as Tensor | null)?.toArray()).toEqual([2 * i, 2 * i])
  }
})
