import { canonicalJson } from '../../dist/src/strand/json.js'
import { hex } from './strand-maker.mjs'

// RFC 8785, appendix B: the bits of a double and its text.
const numbers = [
  ['0000000000000000', '0'],
  ['8000000000000000', '0'],
  ['0000000000000001', '5e-324'],
  ['8000000000000001', '-5e-324'],
  ['7fefffffffffffff', '1.7976931348623157e+308'],
  ['ffefffffffffffff', '-1.7976931348623157e+308'],
  ['4340000000000000', '9007199254740992'],
  ['c340000000000000', '-9007199254740992'],
  ['4430000000000000', '295147905179352830000'],
  ['44b52d02c7e14af5', '9.999999999999997e+22'],
  ['44b52d02c7e14af6', '1e+23'],
  ['44b52d02c7e14af7', '1.0000000000000001e+23'],
  ['444b1ae4d6e2ef4e', '999999999999999700000'],
  ['444b1ae4d6e2ef4f', '999999999999999900000'],
  ['444b1ae4d6e2ef50', '1e+21'],
  ['3eb0c6f7a0b5ed8c', '9.999999999999997e-7'],
  ['3eb0c6f7a0b5ed8d', '0.000001'],
  ['41b3de4355555553', '333333333.3333332'],
  ['41b3de4355555554', '333333333.33333325'],
  ['41b3de4355555555', '333333333.3333333'],
  ['41b3de4355555556', '333333333.3333334'],
  ['41b3de4355555557', '333333333.33333343'],
  ['becbf647612f3696', '-0.0000033333333333333333'],
  ['43143ff3c1cb0959', '1424953923781206.2'],
].map(([bits, text]) => ({ bits, text }))

export function jsonVectors() {
  const canonical = [
    // RFC 8785, 3.2.2 and 3.2.3.
    '{"numbers":[333333333.33333329,1E30,4.50,2e-3,0.000000000000000000000000001],"string":"\\u20ac$\\u000F\\u000aA\'\\u0042\\u0022\\u005c\\\\\\"\\/","literals":[null,true,false]}',
    '{"\\u20ac":"Euro Sign","\\r":"Carriage Return","\\ufb33":"Hebrew Letter Dalet With Dagesh","1":"One","\\ud83d\\ude00":"Emoji: Grinning Face","\\u0080":"Control","\\u00f6":"Latin Small Letter O With Diaeresis"}',
    '{"10":1,"9":2,"a":{"2":0,"10":0,"1":0}}',
    ' [ -0 , 0.0, 1.0, 1e2, 100, 9007199254740991, -9007199254740991, 9007199254740993.0 ] ',
    '{"b":[],"a":{},"":""}',
    '"\\u2028\\u2029\\u007f\\u0000"',
    'null',
    '{"nested":{"z":[{"y":1,"x":{"b":2,"a":1}}],"a":0}}',
  ].map((input) => ({ input, canonical: canonicalJson(JSON.parse(input)) }))
  const refused = [
    ['duplicate key', '{"a":1,"a":1}'],
    ['duplicate key under an escape', '{"a":1,"\\u0061":2}'],
    ['duplicate key whose first value has members', '{"a":{"b":1},"a":0}'],
    ['lone surrogate in a string', '["\\ud800"]'],
    ['lone low surrogate in a string', '["\\udc00\\ud800"]'],
    ['lone surrogate in a key', '{"\\ud83d":1}'],
    ['__proto__', '{"__proto__":1}'],
    ['__proto__ under an escape', '{"\\u005f_proto__":{}}'],
    ['NUL in a key', '{"a\\u0000":1}'],
    ['infinite number', '[1e400]'],
    ['integer beyond 2^53-1', '[9007199254740992]'],
    ['integer below -(2^53-1)', '[-9007199254740992]'],
    ['65 levels', '['.repeat(65) + ']'.repeat(65)],
    ['nothing', ''],
    ['two values', '1 2'],
    ['trailing comma', '[1,]'],
    ['leading zero', '[01]'],
    ['byte order mark', '\ufeff{}'],
  ].map(([name, input]) => ({ name, input_hex: hex(Buffer.from(input)) }))
  refused.push(
    { name: 'not UTF-8', input_hex: '22ff22' },
    { name: 'overlong UTF-8', input_hex: '22c0af22' },
    { name: 'surrogate in UTF-8', input_hex: '22eda08022' },
  )
  return { depth_max: 64, numbers, canonical, refused }
}
