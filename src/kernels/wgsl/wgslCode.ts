// Straight-line shader code. Every value of 32 bits is a u32 that holds its bits, masks are 0 or -1, and an int64 is a vec2<u32>, the lower half first: a shader compiler may
// assume that no float is NaN or infinite, but not that of integers. Floats exist only for the length of an instruction.
//
// A shader compiler may also compute floats as if they were real numbers: most drivers take (x + c) - c for x, with which rounding to integers by a large constant fails, and a product
// and a sum for one operation. So the bits of each result of arithmetic go through an exclusive or with a zero that is known only when the shader runs. Division and square roots
// may be off by some units of the last place in WGSL; the functions of the library that take their place are exact.
import type { LaneBinary, LaneCode, LaneShift, LaneUnary } from '../wasm/laneCode.ts'

const floatBits = new Float32Array(1)
const wordBits = new Uint32Array(floatBits.buffer)

/** The bits of the float32 next to a number. */
export function bitsOfFloat(value: number): number {
  floatBits[0] = value
  return wordBits[0] ?? 0
}

const float = (a: string): string => `bitcast<f32>(${a})`
const signed = (a: string): string => `bitcast<i32>(${a})`
const asBits = (expression: string): string => `bitcast<u32>(${expression})`
/** The zero that compilers cannot know, see {@link ShaderWord}. */
const ZERO = 'uniforms[0].y'
const asMask = (condition: string): string => `select(0u, 0xffffffffu, ${condition})`

/** What is done to the operand of a {@link LaneUnary}. */
const unary: Readonly<Record<LaneUnary, (a: string) => string>> = {
  'f32x4.abs': (a) => `${a} & 0x7fffffffu`,
  'f32x4.neg': (a) => `${a} ^ 0x80000000u`,
  'f32x4.sqrt': (a) => `tfx_squareRoot(${a})`,
  'f32x4.floor': (a) => `tfx_floor(${a})`,
  'f32x4.ceil': (a) => `tfx_ceil(${a})`,
  'f32x4.trunc': (a) => `tfx_trunc(${a})`,
  'f32x4.nearest': (a) => `tfx_nearest(${a})`,
  'f32x4.convert_i32x4_s': (a) => asBits(`f32(${signed(a)})`),
  'i32x4.trunc_sat_f32x4_s': (a) => `tfx_toInt(${a})`,
  'i32x4.abs': (a) => asBits(`abs(${signed(a)})`),
  'i32x4.neg': (a) => `0u - ${a}`,
  'v128.not': (a) => `~${a}`,
}

const arithmetic =
  (symbol: string) =>
  (a: string, b: string): string =>
    `${asBits(`${float(a)} ${symbol} ${float(b)}`)} ^ zero`
const ordered =
  (symbol: string) =>
  (a: string, b: string): string =>
    asMask(`${signed(a)} ${symbol} ${signed(b)}`)
const plain =
  (symbol: string) =>
  (a: string, b: string): string =>
    `${a} ${symbol} ${b}`
const called =
  (name: string) =>
  (a: string, b: string): string =>
    `tfx_${name}(${a}, ${b})`

/** What is done to the operands of a {@link LaneBinary}. */
const binary: Readonly<Record<LaneBinary, (a: string, b: string) => string>> = {
  'f32x4.add': arithmetic('+'),
  'f32x4.sub': arithmetic('-'),
  'f32x4.mul': arithmetic('*'),
  'f32x4.div': called('quotient'),
  'f32x4.min': called('min'),
  'f32x4.max': called('max'),
  'f32x4.pmin': (a, b) => `select(${a}, ${b}, tfx_lt(${b}, ${a}) != 0u)`,
  'f32x4.pmax': (a, b) => `select(${a}, ${b}, tfx_lt(${a}, ${b}) != 0u)`,
  'f32x4.eq': called('eq'),
  'f32x4.ne': (a, b) => `~tfx_eq(${a}, ${b})`,
  'f32x4.lt': called('lt'),
  'f32x4.le': called('le'),
  'f32x4.gt': (a, b) => `tfx_lt(${b}, ${a})`,
  'f32x4.ge': (a, b) => `tfx_le(${b}, ${a})`,
  'i32x4.add': plain('+'),
  'i32x4.sub': plain('-'),
  'i32x4.mul': plain('*'),
  'i32x4.min_s': (a, b) => asBits(`min(${signed(a)}, ${signed(b)})`),
  'i32x4.max_s': (a, b) => asBits(`max(${signed(a)}, ${signed(b)})`),
  'i32x4.eq': (a, b) => asMask(`${a} == ${b}`),
  'i32x4.ne': (a, b) => asMask(`${a} != ${b}`),
  'i32x4.lt_s': ordered('<'),
  'i32x4.le_s': ordered('<='),
  'i32x4.gt_s': ordered('>'),
  'i32x4.ge_s': ordered('>='),
  'v128.and': plain('&'),
  'v128.or': plain('|'),
  'v128.xor': plain('^'),
  'v128.andnot': (a, b) => `${a} & ~${b}`,
}

/** The body of a shader function while it is written. */
export class WgslCode implements LaneCode<string> {
  readonly #lines: string[] = []
  readonly #constants = new Map<string, string>()
  #count = 0
  #indent = '  '

  /** A line as it is. */
  line(text: string): void {
    this.#lines.push(this.#indent + text)
  }

  /** A block: a loop, or a condition. */
  block(head: string, body: () => void): void {
    this.line(`${head} {`)
    this.#indent += '  '
    body()
    this.#indent = this.#indent.slice(2)
    this.line('}')
  }

  /** A name that nothing else has. */
  name(prefix: string): string {
    return `${prefix}${this.#count++}`
  }

  /** The value of an expression, computed here. */
  let(expression: string): string {
    const name = this.name('t')
    this.line(`let ${name} = ${expression};`)
    return name
  }

  /** A call of a function of the library; see library.ts. */
  call(name: string, ...args: readonly string[]): string {
    return this.let(`tfx_${name}(${args.join(', ')})`)
  }

  /** A constant of 32 bits. It is a variable: a shader whose constant expressions are NaN or infinite does not compile. */
  word(bits: number): string {
    return this.#constant(`${bits >>> 0}u`)
  }

  #constant(text: string): string {
    const known = this.#constants.get(text)
    if (known !== undefined) return known
    const name = `k${this.#constants.size}`
    this.#constants.set(text, name)
    return name
  }

  /** Hidden, too: compilers take x * 0 for 0, which is wrong for NaN, infinities and -0. */
  f32(value: number): string {
    return this.#constant(`${bitsOfFloat(value)}u ^ zero`)
  }

  i32(value: number): string {
    return this.word(value)
  }

  i64(value: bigint): string {
    const bits = BigInt.asUintN(64, value)
    return `vec2<u32>(${bits & 0xffffffffn}u, ${bits >> 32n}u)`
  }

  op1(name: LaneUnary, a: string): string {
    return this.let(unary[name](a))
  }

  op2(name: LaneBinary, a: string, b: string): string {
    return this.let(binary[name](a, b))
  }

  mulAdd(a: string, b: string, c: string): string {
    return this.op2('f32x4.add', this.op2('f32x4.mul', a, b), c)
  }

  /** a * b + c, rounded once or twice, and added in any order to what is added to it: for sums of products, which take most of the time of models. */
  freeMulAdd(a: string, b: string, c: string): string {
    return this.let(asBits(`${float(a)} * ${float(b)} + ${float(c)}`))
  }

  subMul(a: string, b: string, c: string): string {
    return this.op2('f32x4.sub', c, this.op2('f32x4.mul', a, b))
  }

  select(mask: string, a: string, b: string): string {
    return this.let(`select(${b}, ${a}, ${mask} != 0u)`)
  }

  shift(name: LaneShift, a: string, count: number): string {
    if (name === 'i32x4.shl') return this.let(`${a} << ${count}u`)
    return this.let(name === 'i32x4.shr_u' ? `${a} >> ${count}u` : asBits(`${signed(a)} >> ${count}u`))
  }

  scope<T extends string>(body: () => T): T {
    return body()
  }

  /** The constants, then what was written. */
  text(): string {
    const constants = [...this.#constants].map(([text, name]) => `  let ${name} = ${text};`)
    const lines = [...constants, ...this.#lines]
    return [...(lines.some((line) => line.includes('^ zero')) ? [`  let zero = ${ZERO};`] : []), ...lines].join('\n')
  }
}
