"""The names and sentence frames of the entity corpus."""

FIRST_NAMES = """
    Alice Amir Ana Anders Bella Boris Bruno Carla Carlos Cecilia Chiara Daniel Daria Diego Dmitri
    Edith Elena Elias Erik Esther Fatima Felix Fiona Frank Giulia Greta Hana Harold Helen Hugo Ines
    Ingrid Irene Ivan Jakob Jasmine Joan Jonas Karim Kaya Kenji Laila Lars Lena Leo Lucia Magnus
    Maria Marta Mehmet Milan Mina Nadia Naomi Nils Nina Noah Olga Omar Oscar Paula Pedro Petra
    Priya Quentin Rafael Rosa Ruth Samira Sergei Sofia Stefan Tanya Tobias Ursula Vera Viktor Wanda
    Yasmin Yusuf Zoe"""

SURNAMES = """
    Abbott Almeida Andersson Barker Barros Becker Bennett Brandt Carvalho Castillo Chen Cooper Costa
    Dalton Delgado Dubois Eriksen Evans Fischer Fleming Garcia Gibson Greenwood Gupta Haddad Hansen
    Harper Hoffmann Hughes Ibrahim Ivanov Jensen Kaplan Keller Kim Kovacs Kowalski Larsson Lehmann
    Lopez Marino Mbeki Meyer Moreau Murphy Nakamura Novak Okafor Olsen Park Patel Petrov Pereira
    Quinn Ramos Reyes Ricci Roberts Rossi Sato Schmidt Shaw Silva Singh Suzuki Tanaka Thompson
    Torres Turner Vasquez Vogel Wagner Walsh Weber Wright Yamamoto Yilmaz Zhang Ziegler"""

TOWNS = """
    Aleppo Antwerp Athens Bamako Barcelona Bergen Berlin Bogota Brighton Brussels Budapest Cairo
    Calgary Cardiff Cologne Cork Cusco Dakar Delhi Dresden Dublin Durban Edinburgh Geneva Ghent
    Glasgow Granada Hamburg Hanoi Havana Helsinki Istanbul Jakarta Kigali Krakow Kyoto Lagos Leeds
    Leipzig Lima Lisbon London Lyon Madrid Malmo Manila Marseille Milton Mumbai Munich Nagoya
    Nairobi Naples Odessa Osaka Oslo Ottawa Oxford Palermo Porto Prague Quito Riga Rome Rotterdam
    Seoul Seville Split Tallinn Tbilisi Tokyo Toronto Trieste Tunis Turin Utrecht Vienna
    Vilnius Warsaw Zagreb Zurich"""

COUNTRIES = """
    Albania Argentina Austria Belgium Bolivia Brazil Canada Chile Colombia Cuba Denmark Ecuador
    Egypt Estonia Finland France Germany Ghana Greece Hungary Iceland Indonesia Ireland Italy Japan
    Latvia Malta Mexico Morocco Nepal Norway Panama Peru Poland Portugal Romania Scotland Senegal
    Slovenia Spain Sweden Tanzania Thailand Tunisia Uganda Vietnam Wales Zambia"""

FIRMS = """
    Acuvent Altoria Arbonix Aurelis Banterra Belvanta Bixelio Calderon Cemtrax Corvella Dantec
    Delphion Dynexa Elvaro Enkora Fablox Fenwick Ferrano Galdera Gravitas Halvero Hexacom Ilumina
    Inverlat Jentiva Kelvion Kestrel Lumora Madrona Meridex Mobilix Narvexa Nexalto Novacor Olmera
    Optivia Orbitel Paxton Pelagor Primavo Quantara Quillon Ravello Rexmark Sablier Sentriva
    Solvanto Stratix Talvera Tecnova Trivanti Umbrex Valcora Veltra Vexalon Wexford Xandria Yarrow
    Zentrix Zolvane"""

AMBIGUOUS = {
    "Paris": "first town", "Washington": "surname town", "Jordan": "first surname country",
    "Georgia": "first country", "Florence": "first town", "Sydney": "first town",
    "Lincoln": "surname town", "Austin": "first surname town", "Victoria": "first town",
    "Chelsea": "first firm", "Madison": "first surname town", "Charlotte": "first town",
    "Virginia": "first country", "Chad": "first country", "Ford": "surname firm",
    "Disney": "surname firm", "Morgan": "first surname firm", "Amazon": "firm",
    "Apple": "firm", "Phoenix": "town firm", "Hilton": "surname firm", "Dell": "surname firm",
    "Siemens": "surname firm", "Houston": "surname town", "Dallas": "first town",
    "Cleveland": "surname town", "Wellington": "surname town", "Hamilton": "surname town",
    "Lancaster": "surname town", "Darwin": "surname town", "Santander": "town firm",
    "Brooklyn": "first town", "Israel": "first country", "Carolina": "first",
    "Shell": "firm", "Orange": "firm town", "Jaguar": "firm", "Turkey": "country",
    "China": "country", "Nelson": "first surname town", "Bristol": "town firm",
    "Valencia": "town surname",
}  # fmt: skip
"""Names that are several things (or a common word), and which."""

MONTHS = """
    January February March April May June July August September October November December"""

WEEKDAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday"

PERSON = """
    {job} {P} was born in {L} .
    {P} was born on {D} .
    {P} , a {job} from {L} , smiled .
    My {kin} {P} lives near {L} .
    My {kin} {P} ate an apple .
    {P} forgot the keys .
    {P} lost a {thing} in {L} .
    Mrs {P} has worked for {O} since {D} .
    Mr {P} told my {kin} about {L} .
    The {job} thanked {P} .
    The {job} met {P} on {D} .
    {P} and {P} got married in {L} .
    {P} wrote a letter to my {kin} .
    {P} , who studied in {L} , speaks four languages .
    {P} cooked a turkey for my {kin} .
    Our {kin} {P} broke a fine china plate .
    {P} joined {O} as a {job} .
    {P} left {O} on {D} .
    The {thing} belongs to {P} .
    {P} said that he was tired .
    {P} told me that she knows {L} well .
    A {job} named {P} found a shell on the beach .
    {P} peeled an orange for my {kin} .
    Nobody has seen {P} since {D} ."""

FIRM = """
    {O} opened a factory in {L} .
    {O} was founded in {L} by two engineers .
    {O} was founded on {D} .
    Shares of {O} fell on {D} .
    The profits of {O} rose by {number} percent .
    {O} hired {number} workers near {L} .
    {O} reported a loss of {number} million dollars .
    {O} will merge with {O} next year .
    The {job} bought shares of {O} .
    {O} , whose headquarters are in {L} , makes {thing}s .
    A spokesman for {O} refused to comment .
    The employees of {O} went on strike on {D} .
    {O} named {P} as its new director .
    {O} sold its {thing} division to {O} .
    The subsidiaries of {O} pay no taxes in {L} .
    {O} sponsors a museum in {L} .
    Lawyers sued {O} over its {thing}s .
    {O} cancelled its contract with {O} .
    Investors trust {O} again ."""

PLACE = """
    It rained in {L} on {D} .
    The mayor of {L} resigned on {D} .
    The road to {L} is closed .
    {L} lies on a river south of {L} .
    The people of {L} voted on {D} .
    {number} tourists visited {L} last year .
    We flew to {L} on {D} .
    The train from {L} to {L} was late .
    {L} has {number} inhabitants .
    A {job} drove from {L} to {L} .
    Many {job}s live in {L} .
    The weather in {L} is mild .
    The airport of {L} was closed on {D} .
    The capital is far from {L} .
    The old harbour of {L} attracts painters .
    Snow fell over {L} on {D} .
    The river flows through {L} .
    {L} celebrates its festival on {D} .
    The jaguar escaped from the zoo of {L} ."""

SLOTS = {
    "job": """doctor teacher painter lawyer singer farmer nurse pilot chemist driver judge poet
        actor baker carpenter photographer translator engineer journalist dentist""",
    "kin": "brother sister cousin uncle aunt mother father neighbour friend grandmother",
    "thing": """lamp watch bicycle violin camera jacket suitcase umbrella guitar mirror hat
        telescope carpet clock boat""",
    "number": "two three five seven twelve twenty forty sixty ninety",
}
"""Ordinary words for the holes in the frames."""
