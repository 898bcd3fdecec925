// The functions that a kernel's module calls: JavaScript functions of float64, which it imports, and functions of whole vectors, which it contains once.
// The functions themselves belong to the scalar operations (scalarCode.ts, vectorFunctions.ts).
import { InternalError } from '../../errors/index.ts'
import type { ModuleBuilder } from './assembler.ts'
import { VectorCode } from './vectorCode.ts'
import type { Val } from './vectorCode.ts'

/** A JavaScript function of float64 numbers. A module imports it as `math.<name>`. */
export interface HostFunction {
  readonly name: string
  readonly arity: 1 | 2
  readonly run: (a: number, b: number) => number
}

/** A function of one or two vectors, which a module contains if it calls it. */
export interface VectorFunction {
  readonly name: string
  readonly arity: 1 | 2
  /** The JavaScript function that it calls for operands that it cannot handle, or null. */
  readonly host: HostFunction | null
  /** Writes the body and returns the result. With one operand, `y` is `x`. */
  readonly write: (code: VectorCode, x: Val, y: Val, functions: ModuleFunctions) => Val
}

export class ModuleFunctions {
  private readonly module: ModuleBuilder
  private readonly imported = new Map<HostFunction, number>()
  private readonly defined = new Map<VectorFunction, number>()

  /** Imports `hosts`: every JavaScript function that the module will call, because imports come before a module's own functions. */
  constructor(module: ModuleBuilder, hosts: Iterable<HostFunction>) {
    this.module = module
    for (const host of hosts) {
      const params = host.arity === 1 ? (['f64'] as const) : (['f64', 'f64'] as const)
      this.imported.set(host, module.importFunction('math', host.name, params, ['f64']))
    }
  }

  /** The index of an imported function. */
  indexOf(host: HostFunction): number {
    const index = this.imported.get(host)
    if (index === undefined) throw new InternalError(`the module calls math.${host.name} but does not import it`)
    return index
  }

  /** Calls a JavaScript function on float64 values. */
  callHost(code: VectorCode, host: HostFunction, args: readonly Val[]): Val {
    const index = this.indexOf(host)
    return code.eachLane64('f64x2', args, (v, lane) => {
      for (const arg of args) {
        code.f.get(code.at(arg, v))
        code.f.lane('f64x2.extract_lane', lane)
      }
      code.f.call(index)
    })
  }

  /** Calls a JavaScript function on each lane of float32 values. */
  callHostFloat32(code: VectorCode, host: HostFunction, args: readonly Val[]): Val {
    const index = this.indexOf(host)
    const { f } = code
    return code.each(args, (v) => {
      for (const base of args.slice(0, 1)) f.get(code.at(base, v))
      for (let lane = 0; lane < 4; lane++) {
        for (const arg of args) {
          f.get(code.at(arg, v))
          f.lane('f32x4.extract_lane', lane)
          f.op('f64.promote_f32')
        }
        f.call(index)
        f.op('f32.demote_f64')
        f.lane('f32x4.replace_lane', lane)
      }
    })
  }

  /** Calls a function of this module, and writes it at the first call. */
  call(code: VectorCode, callee: VectorFunction, args: readonly Val[]): Val {
    let index = this.defined.get(callee)
    if (index === undefined) {
      index = this.define(callee)
      this.defined.set(callee, index)
    }
    const target = index
    return code.each(args, (v) => {
      for (const arg of args) code.f.get(code.at(arg, v))
      code.f.call(target)
    })
  }

  private define(callee: VectorFunction): number {
    const f = this.module.function(callee.arity === 1 ? ['v128'] : ['v128', 'v128'], ['v128'])
    const code = new VectorCode(f)
    const x: Val = [0]
    const y: Val = callee.arity === 1 ? x : [1]
    f.get(code.at(callee.write(code, x, y, this), 0))
    return f.index
  }
}
