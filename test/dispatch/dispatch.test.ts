// The way of one call: decomposition, autograd, the innermost mode, the kernel.
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { nn, torch } from 'tensorfx'
import {
  FakeTensorMode,
  RecordMode,
  anyRequiresGrad,
  anyTensor,
  dispatch,
  dispatchBelowAutograd,
  dispatchState,
  fakeLike,
  isArgList,
  runKernel,
  tensorAt,
  withMode,
  withoutModes,
} from '../../src/dispatch/index.ts'
import type { Arg, DispatchMode, OpDef, Result } from '../../src/dispatch/index.ts'
import { InternalError, present } from '../../src/errors/index.ts'
import { opOf } from '../../src/ops/index.ts'

const { tensor } = torch
const plain = tensor([1, 2])
const trained = tensor([3, 4], { requiresGrad: true })
const result = tensor(7)

/** What handled the calls of a test, in order. */
let seen: string[] = []
const says =
  (who: string) =>
  (...args: readonly Arg[]): Result => {
    seen.push(`${who}(${args.length})`)
    return result
  }

const relu = present(opOf(torch.relu), 'relu')
/** An operator with a kernel, and whatever else is given. */
const made = (facts: Partial<OpDef>): OpDef => ({
  ...relu,
  name: 'own',
  qualname: 'torch.own',
  kernel: says('kernel'),
  decompose: null,
  derivative: null,
  functional: null,
  ...facts,
})
const derivative = (): readonly null[] => [null]

const { autograd } = dispatchState
beforeEach(() => {
  seen = []
  dispatchState.autograd = (op, args) => {
    seen.push(`autograd of ${op.name}(${args.length})`)
    return result
  }
})
afterEach(() => {
  dispatchState.autograd = autograd
  dispatchState.gradEnabled = true
})
const way = (op: OpDef, ...args: readonly Arg[]): readonly string[] => {
  seen = []
  expect(dispatch(op, args)).toBe(result)
  return seen
}

describe('arguments', () => {
  test('lists are arrays', () => {
    expect([[], [1], plain, 'ab', null, undefined, 3].map((arg) => isArgList(arg))).toEqual([true, true, false, false, false, false, false])
  })

  test('tensorAt gives the tensor, or says which argument is none', () => {
    expect(tensorAt([1, plain], 1)).toBe(plain)
    expect(() => tensorAt([1, plain], 0)).toThrow(new InternalError('argument 0 must be a tensor'))
    expect(() => tensorAt([plain], 1)).toThrow(new InternalError('argument 1 must be a tensor'))
  })

  test('anyTensor: one is enough', () => {
    expect([[], [1, 2], [1, plain], [plain]].map(anyTensor)).toEqual([false, false, true, true])
  })

  test('anyRequiresGrad looks at every argument, and into lists', () => {
    const without: readonly (readonly Arg[])[] = [[], [plain], [1, 'a', null, true], [[plain, 1], plain]]
    const having: readonly (readonly Arg[])[] = [[trained], [plain, trained], [1, [plain, [trained]]], [[trained], plain], [plain, null, trained]]
    expect(without.map(anyRequiresGrad)).toEqual([false, false, false, false])
    expect(having.map(anyRequiresGrad)).toEqual([true, true, true, true, true])
  })
})

describe('dispatch', () => {
  test('a composite decomposes at once, also if it has a kernel or a mode is active', () => {
    const composite = made({ decompose: says('decompose') })
    expect(way(composite, trained)).toEqual(['decompose(1)'])
    const mode = new RecordMode()
    withMode(mode, () => expect(way(composite, plain)).toEqual(['decompose(1)']))
    expect(mode.calls).toEqual([])
  })

  test('an operator with a derivative of its own does not', () => {
    const op = made({ decompose: says('decompose'), derivative })
    expect(way(op, plain, 1)).toEqual(['kernel(2)'])
    expect(way(op, trained)).toEqual(['autograd of own(1)'])
  })

  test('autograd sees the calls with tensors that require grad', () => {
    const op = made({ derivative })
    expect([way(op, plain), way(op, trained), way(op, plain, [trained])]).toEqual([['kernel(1)'], ['autograd of own(1)'], ['autograd of own(2)']])
  })

  test('without grad mode it sees only operators that write', () => {
    dispatchState.gradEnabled = false
    const writes = made({ functional: relu })
    expect([way(made({ derivative }), trained), way(writes, plain)]).toEqual([['kernel(1)'], ['autograd of own(1)']])
    dispatchState.gradEnabled = true
    expect(way(writes, plain)).toEqual(['autograd of own(1)'])
  })

  test('without autograd the kernel runs', () => {
    dispatchState.autograd = null
    expect([way(made({ derivative }), trained), way(made({ functional: relu }), plain)]).toEqual([['kernel(1)'], ['kernel(1)']])
  })

  test('an operator without a kernel runs its decomposition, and one without both is a bug', () => {
    const op = made({ kernel: null, decompose: says('decompose'), derivative })
    expect(runKernel(op, [1, 2])).toBe(result)
    expect(runKernel(made({ decompose: says('decompose') }), [1])).toBe(result)
    expect(seen).toEqual(['decompose(2)', 'kernel(1)'])
    expect(() => runKernel(made({ kernel: null }), [])).toThrow(new InternalError('operator torch.own has neither a kernel nor a decomposition'))
  })
})

describe('modes', () => {
  /** A mode that notes its calls and whether it is active during them, and passes them on. */
  const noting = (name: string, staysActive?: boolean): DispatchMode => {
    const mode: DispatchMode = {
      name,
      ...(staysActive === undefined ? {} : { staysActive }),
      handle(op, args) {
        seen.push(`${name}, active: ${dispatchState.mode?.name ?? 'none'}, modes: ${dispatchState.modes.length}`)
        return staysActive === true ? withoutModes(() => dispatchBelowAutograd(op, args)) : dispatchBelowAutograd(op, args)
      },
    }
    return mode
  }

  test('a mode is inactive while it handles a call, and those outside of it are reached', () => {
    const [outer, inner] = [noting('outer'), noting('inner')]
    withMode(outer, () =>
      withMode(inner, () => {
        expect(way(made({}), plain)).toEqual(['inner, active: outer, modes: 1', 'outer, active: none, modes: 0', 'kernel(1)'])
        expect(dispatchState.mode).toBe(inner)
        expect(dispatchState.modes).toEqual([outer, inner])
      }),
    )
    expect([dispatchState.mode, dispatchState.modes]).toEqual([null, []])
  })

  test('a mode that stays active is not taken off the stack', () => {
    const mode = noting('stays', true)
    withMode(mode, () => expect(way(made({}), plain)).toEqual(['stays, active: stays, modes: 1', 'kernel(1)']))
    const leaves = noting('leaves', false)
    withMode(leaves, () => expect(way(made({}), plain)).toEqual(['leaves, active: none, modes: 0', 'kernel(1)']))
  })

  test('a mode is back after a call that throws', () => {
    const mode: DispatchMode = {
      name: 'throws',
      handle() {
        throw new Error('no')
      },
    }
    withMode(mode, () => {
      expect(() => dispatch(made({}), [plain])).toThrow('no')
      expect([dispatchState.mode, dispatchState.modes]).toEqual([mode, [mode]])
    })
    expect(() =>
      withMode(mode, () => {
        throw new Error('other')
      }),
    ).toThrow('other')
    expect([dispatchState.mode, dispatchState.modes]).toEqual([null, []])
  })

  test('withoutModes has none, and gives them back, also after an error', () => {
    const mode = noting('mode')
    withMode(mode, () => {
      expect(withoutModes(() => [dispatchState.mode, dispatchState.modes])).toEqual([null, []])
      expect(dispatchState.mode).toBe(mode)
      expect(() =>
        withoutModes(() => {
          throw new Error('no')
        }),
      ).toThrow('no')
      expect([dispatchState.mode, dispatchState.modes]).toEqual([mode, [mode]])
    })
  })

  test('the modes have names', () => {
    expect([new FakeTensorMode().name, new RecordMode().name]).toEqual(['FakeTensorMode', 'RecordMode'])
  })

  test('RecordMode keeps operator, arguments and result of each call', () => {
    const mode = new RecordMode()
    const op = made({})
    withMode(mode, () => dispatch(op, [plain, 1]))
    expect(mode.calls).toEqual([{ op, args: [plain, 1], result }])
    expect(mode.calls[0]?.result).toBe(result)
    expect(mode.names).toEqual(['torch.own'])
  })
})

describe('fake tensors', () => {
  const spec = { shape: [2], dtype: 'float32' } as const

  test('an operator with several results has as many fake ones, and only views have a base', () => {
    const mode = new FakeTensorMode()
    const several = mode.handle(made({ meta: () => [spec, { shape: [], dtype: 'int32' }] }), [plain])
    expect(Array.isArray(several) && several.map((t) => [t.isFake, t.shape, t.dtype, t.viewBase])).toEqual([
      [true, [2], 'float32', null],
      [true, [], 'int32', null],
    ])
    const tags = new Set(['view'] as const)
    const view = tensorAt([mode.handle(made({ tags, meta: () => spec }), [plain])], 0)
    expect(view.viewBase).toBe(plain)
    // The base of a view of a view is the tensor that has the data.
    expect(tensorAt([mode.handle(made({ tags, meta: () => spec }), [view])], 0).viewBase).toBe(plain)
    expect(() => mode.handle(made({ tags, meta: () => spec }), [1])).toThrow(new InternalError('view operator torch.own was called without a tensor'))
  })

  test('an operator that writes returns what it writes to', () => {
    const mode = new FakeTensorMode()
    expect(mode.handle(made({ tags: new Set(['mutates'] as const), meta: () => spec }), [plain]) === plain).toBe(true)
    expect(mode.handle(made({ tags: new Set(['mutates'] as const), meta: () => spec }), [1]) === plain).toBe(false)
  })

  test('fakeLike keeps shape, strides, offset, dtype and marks', () => {
    const parameter = new nn.Parameter(tensor([[1, 2, 3]]))
    expect([parameter, trained, plain].map(fakeLike).map((t) => [t.isFake, t.shape, t.dtype, t.requiresGrad, t.isParameter])).toEqual([
      [true, [1, 3], 'float32', true, true],
      [true, [2], 'float32', true, false],
      [true, [2], 'float32', false, false],
    ])
    const row = tensor([
      [1, 2, 3],
      [4, 5, 6],
    ]).narrow(0, 1, 1)
    expect([fakeLike(row).offset, fakeLike(row).strides]).toEqual([3, [3, 1]])
  })
})
