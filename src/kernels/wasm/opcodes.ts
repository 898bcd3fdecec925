// The WebAssembly instructions that kernels use, by their names in the specification. Data only; assembler.ts writes them.

/** Instructions without immediates, one byte. */
export const plainOps = {
  'unreachable': 0x00, 'nop': 0x01, 'return': 0x0f, 'drop': 0x1a, 'select': 0x1b,
  'i32.eqz': 0x45, 'i32.eq': 0x46, 'i32.ne': 0x47, 'i32.lt_s': 0x48, 'i32.lt_u': 0x49, 'i32.gt_s': 0x4a, 'i32.gt_u': 0x4b,
  'i32.le_s': 0x4c, 'i32.le_u': 0x4d, 'i32.ge_s': 0x4e, 'i32.ge_u': 0x4f,
  'i64.eqz': 0x50, 'i64.eq': 0x51, 'i64.ne': 0x52, 'i64.lt_s': 0x53, 'i64.gt_s': 0x55,
  'f32.eq': 0x5b, 'f32.ne': 0x5c, 'f32.lt': 0x5d, 'f32.gt': 0x5e, 'f32.le': 0x5f, 'f32.ge': 0x60,
  'f64.eq': 0x61, 'f64.ne': 0x62, 'f64.lt': 0x63, 'f64.gt': 0x64, 'f64.le': 0x65, 'f64.ge': 0x66,
  'i32.clz': 0x67, 'i32.ctz': 0x68, 'i32.popcnt': 0x69, 'i32.add': 0x6a, 'i32.sub': 0x6b, 'i32.mul': 0x6c, 'i32.div_s': 0x6d, 'i32.div_u': 0x6e,
  'i32.rem_s': 0x6f, 'i32.rem_u': 0x70, 'i32.and': 0x71, 'i32.or': 0x72, 'i32.xor': 0x73, 'i32.shl': 0x74, 'i32.shr_s': 0x75, 'i32.shr_u': 0x76,
  'i64.add': 0x7c, 'i64.sub': 0x7d, 'i64.mul': 0x7e, 'i64.and': 0x83, 'i64.or': 0x84, 'i64.shl': 0x86, 'i64.shr_s': 0x87, 'i64.shr_u': 0x88,
  'f32.abs': 0x8b, 'f32.neg': 0x8c, 'f32.ceil': 0x8d, 'f32.floor': 0x8e, 'f32.trunc': 0x8f, 'f32.nearest': 0x90, 'f32.sqrt': 0x91,
  'f32.add': 0x92, 'f32.sub': 0x93, 'f32.mul': 0x94, 'f32.div': 0x95, 'f32.min': 0x96, 'f32.max': 0x97, 'f32.copysign': 0x98,
  'f64.abs': 0x99, 'f64.neg': 0x9a, 'f64.ceil': 0x9b, 'f64.floor': 0x9c, 'f64.trunc': 0x9d, 'f64.nearest': 0x9e, 'f64.sqrt': 0x9f,
  'f64.add': 0xa0, 'f64.sub': 0xa1, 'f64.mul': 0xa2, 'f64.div': 0xa3, 'f64.min': 0xa4, 'f64.max': 0xa5, 'f64.copysign': 0xa6,
  'i32.wrap_i64': 0xa7, 'i64.extend_i32_s': 0xac, 'i64.extend_i32_u': 0xad, 'f32.convert_i32_s': 0xb2, 'f32.demote_f64': 0xb6,
  'f64.convert_i32_s': 0xb7, 'f64.promote_f32': 0xbb, 'i32.reinterpret_f32': 0xbc, 'f32.reinterpret_i32': 0xbe,
} as const

/** Saturating conversions: prefix 0xfc. */
export const saturatingOps = { 'i32.trunc_sat_f32_s': 0, 'i32.trunc_sat_f64_s': 2 } as const

/** SIMD instructions without immediates: prefix 0xfd. */
export const simdOps = {
  'i8x16.swizzle': 14, 'i8x16.splat': 15, 'i16x8.splat': 16, 'i32x4.splat': 17, 'i64x2.splat': 18, 'f32x4.splat': 19, 'f64x2.splat': 20,
  'i8x16.eq': 35, 'i8x16.ne': 36,
  'i32x4.eq': 55, 'i32x4.ne': 56, 'i32x4.lt_s': 57, 'i32x4.lt_u': 58, 'i32x4.gt_s': 59, 'i32x4.gt_u': 60, 'i32x4.le_s': 61, 'i32x4.le_u': 62,
  'i32x4.ge_s': 63, 'i32x4.ge_u': 64,
  'f32x4.eq': 65, 'f32x4.ne': 66, 'f32x4.lt': 67, 'f32x4.gt': 68, 'f32x4.le': 69, 'f32x4.ge': 70,
  'f64x2.eq': 71, 'f64x2.ne': 72, 'f64x2.lt': 73, 'f64x2.gt': 74, 'f64x2.le': 75, 'f64x2.ge': 76,
  'v128.not': 77, 'v128.and': 78, 'v128.andnot': 79, 'v128.or': 80, 'v128.xor': 81, 'v128.bitselect': 82, 'v128.any_true': 83,
  'f32x4.demote_f64x2_zero': 94, 'f64x2.promote_low_f32x4': 95,
  'i8x16.abs': 96, 'i8x16.neg': 97, 'i8x16.bitmask': 100, 'i8x16.narrow_i16x8_s': 101, 'i8x16.narrow_i16x8_u': 102,
  'f32x4.ceil': 103, 'f32x4.floor': 104, 'f32x4.trunc': 105, 'f32x4.nearest': 106, 'f64x2.ceil': 116, 'f64x2.floor': 117, 'f64x2.trunc': 122,
  'i16x8.narrow_i32x4_s': 133, 'i16x8.narrow_i32x4_u': 134, 'i16x8.extend_low_i8x16_s': 135, 'i16x8.extend_low_i8x16_u': 137, 'f64x2.nearest': 148,
  'i32x4.abs': 160, 'i32x4.neg': 161, 'i32x4.all_true': 163, 'i32x4.bitmask': 164, 'i32x4.extend_low_i16x8_s': 167, 'i32x4.extend_low_i16x8_u': 169,
  'i32x4.shl': 171, 'i32x4.shr_s': 172, 'i32x4.shr_u': 173, 'i32x4.add': 174, 'i32x4.sub': 177, 'i32x4.mul': 181,
  'i32x4.min_s': 182, 'i32x4.min_u': 183, 'i32x4.max_s': 184, 'i32x4.max_u': 185,
  'i64x2.abs': 192, 'i64x2.neg': 193, 'i64x2.extend_low_i32x4_s': 199, 'i64x2.extend_low_i32x4_u': 201, 'i64x2.shl': 203, 'i64x2.shr_s': 204,
  'i64x2.shr_u': 205, 'i64x2.add': 206, 'i64x2.sub': 209, 'i64x2.mul': 213, 'i64x2.extmul_low_i32x4_u': 222, 'i64x2.extmul_high_i32x4_u': 223,
  'f32x4.abs': 224, 'f32x4.neg': 225, 'f32x4.sqrt': 227, 'f32x4.add': 228, 'f32x4.sub': 229, 'f32x4.mul': 230, 'f32x4.div': 231,
  'f32x4.min': 232, 'f32x4.max': 233, 'f32x4.pmin': 234, 'f32x4.pmax': 235,
  'f64x2.abs': 236, 'f64x2.neg': 237, 'f64x2.sqrt': 239, 'f64x2.add': 240, 'f64x2.sub': 241, 'f64x2.mul': 242, 'f64x2.div': 243,
  'f64x2.min': 244, 'f64x2.max': 245, 'f64x2.pmin': 246, 'f64x2.pmax': 247,
  'i32x4.trunc_sat_f32x4_s': 248, 'f32x4.convert_i32x4_s': 250, 'i32x4.trunc_sat_f64x2_s_zero': 252, 'f64x2.convert_low_i32x4_s': 254,
} as const

/** Instructions with a lane number: prefix 0xfd. */
export const laneOps = {
  'i8x16.extract_lane_u': 22, 'i8x16.replace_lane': 23, 'i32x4.extract_lane': 27, 'i32x4.replace_lane': 28, 'f32x4.extract_lane': 31,
  'f32x4.replace_lane': 32, 'f64x2.extract_lane': 33, 'f64x2.replace_lane': 34,
} as const

/** Loads and stores: [opcode, log2 of the natural alignment]; those of SIMD have the prefix 0xfd. */
export const memoryOps = {
  'i32.load': [0x28, 2], 'i64.load': [0x29, 3], 'f32.load': [0x2a, 2], 'f64.load': [0x2b, 3], 'i32.load8_s': [0x2c, 0], 'i32.load8_u': [0x2d, 0],
  'i32.store': [0x36, 2], 'i64.store': [0x37, 3], 'f32.store': [0x38, 2], 'f64.store': [0x39, 3], 'i32.store8': [0x3a, 0],
} as const

export const simdMemoryOps = {
  'v128.load': [0, 4], 'v128.load8x8_u': [2, 3], 'v128.load8_splat': [7, 0], 'v128.load32_splat': [9, 2], 'v128.load64_splat': [10, 3],
  'v128.store': [11, 4], 'v128.load32_zero': [92, 2], 'v128.load64_zero': [93, 3],
} as const

/** Loads and stores of one lane: prefix 0xfd, an address immediate, then the lane. */
export const laneMemoryOps = {
  'v128.load8_lane': [84, 0], 'v128.load32_lane': [86, 2], 'v128.load64_lane': [87, 3],
  'v128.store8_lane': [88, 0], 'v128.store32_lane': [90, 2], 'v128.store64_lane': [91, 3],
} as const

export type PlainOp = keyof typeof plainOps | keyof typeof saturatingOps | keyof typeof simdOps
export type LaneOp = keyof typeof laneOps
export type MemoryOp = keyof typeof memoryOps | keyof typeof simdMemoryOps
export type LaneMemoryOp = keyof typeof laneMemoryOps
