import { readFileSync } from 'node:fs'
import { csvParse } from 'd3-dsv'

// The package only exports its entry; the data are beside it.
const folder = new URL('../data/', import.meta.resolve('vega-datasets'))
const read = (name) => readFileSync(new URL(name, folder), 'utf8')

/**
 * A record to write: its agent, type and body.
 * @typedef {{agent: string, type: string, data: object}} Row
 */

/**
 * Public data sets of the package vega-datasets, each row on the strand of its subject. The large file of
 * flights has no airports, so its strands are by distance.
 * @type {{name: string, rows: () => Iterable<Row>}[]}
 */
export const dataSets = [
  {
    name: 'airports of the United States',
    *rows() {
      for (const data of csvRows('airports.csv', ['latitude', 'longitude'])) {
        yield { agent: agentName('airports', data.state), type: 'airport', data }
      }
    },
  },
  {
    name: 'flights by airport of departure, 2001',
    *rows() {
      for (const data of JSON.parse(read('flights-20k.json'))) {
        yield { agent: agentName('departures', data.origin), type: 'flight', data }
      }
    },
  },
  {
    name: 'flights by distance',
    *rows() {
      for (const data of JSON.parse(read('flights-200k.json'))) {
        const hundreds = String(Math.floor(data.distance / 100)).padStart(2, '0')
        yield { agent: agentName('flights', `${hundreds}00-miles`), type: 'flight', data }
      }
    },
  },
  {
    name: 'earthquakes of one week',
    *rows() {
      for (const data of JSON.parse(read('earthquakes.json')).features) {
        yield { agent: agentName('earthquakes', data.properties.net), type: 'earthquake', data }
      }
    },
  },
  {
    name: 'weather of two stations by day',
    *rows() {
      const numeric = ['precipitation', 'temp_max', 'temp_min', 'wind']
      for (const data of csvRows('weather.csv', numeric)) {
        yield { agent: agentName('weather', data.location), type: 'weather/day', data }
      }
    },
  },
  {
    name: 'weather of Seattle by hour',
    *rows() {
      for (const data of csvRows('seattle-weather-hourly-normals.csv', ['pressure', 'temperature', 'wind'])) {
        yield { agent: agentName('weather', 'Seattle-hourly'), type: 'weather/hour', data }
      }
    },
  },
  {
    name: 'wind over a grid',
    *rows() {
      const numeric = ['longitude', 'latitude', 'dir', 'dirCat', 'speed']
      for (const data of csvRows('windvectors.csv', numeric)) {
        yield { agent: agentName('wind', `latitude-${data.latitude}`), type: 'wind', data }
      }
    },
  },
]

/** A valid agent name: letters, digits and _ . - */
function agentName(kind, place) {
  return `${kind}.${String(place).replace(/[^A-Za-z0-9.-]+/g, '_')}`
}

/** The rows of a CSV file. @param {string[]} numeric columns of numbers, in which an invalid cell is null */
function csvRows(name, numeric) {
  return csvParse(read(name), (row) => {
    for (const column of numeric) {
      const value = Number(row[column])
      row[column] = row[column] === '' || Number.isNaN(value) ? null : value
    }
    return row
  })
}
